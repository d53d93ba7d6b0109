#pragma once
#include <map>
#include <set>
#include <vector>

#include "libalpa/plan/owned_updates.h"
#include "libalpa/program/lower/mesh_values.h"
#include "libalpa/program/purpose.h"

namespace alpa {

/// Turns the nodes of a mesh's stages into the instructions of its segments.
class MeshLowering {
 public:
  /// Keeps references during run(). `splits_early`: sums of gradients that end up split have memory of their
  /// own for that, so that it goes on beside the backward; else when that has ended.
  MeshLowering(const Placement&, MeshIndex mesh, Purpose, DeviceKind device,
               const std::vector<StageRun>& order, const std::vector<StageTransfer>&,
               const std::vector<std::int64_t>& message_slots, bool splits_early);

  /// Buffers and segments; schedule, slots and offsets are left to the caller.
  MeshProgram run();

  /// What so many servers do that hold the states of this mesh, which computes; each has a place along the
  /// one axis of theirs.
  MeshProgram run_at_servers(int servers);

 private:
  bool here(NodeIndex node) const { return placement_.mesh_of_node(node) == mesh_; }
  bool is_used(ValueIndex value) const;  ///< on this mesh
  const MeshShape& shape() const { return plan_.meshes[mesh_].shape; }

  void find_kept_values();
  StageIndex first_stage_with(ValueIndex value, Phase) const;
  void keep_for_weights(StageIndex stage);
  bool has(StageIndex stage, SegmentKind) const;  ///< whether the schedule has runs of that kind

  void lower_forward(StageIndex stage);
  void lower_backward(StageIndex stage, SegmentKind);
  void lower_update();
  void update_states();
  void make_scalars();
  void add_up_losses();
  void begin_deferred_update(const std::vector<NodeIndex>& forward);
  void find_updates();
  void update_before(std::size_t place, const std::vector<NodeIndex>& forward);
  void update_states_of(NodeIndex user, bool all);
  void update(NodeIndex first);
  void end_deferred_update();
  void end_step();
  void copy_states();
  void correct_update();
  BufferIndex split_sum(ValueIndex sum);
  void sum_gradients();
  static std::vector<MeshValues::Part> parts_of(const std::vector<OwnedRows>&, int axis);
  void find_owned_updates();
  void reduce_to_owners(const std::vector<ValueIndex>& sums);
  bool is_in_parts(NodeIndex) const;
  void emit_in_parts(NodeIndex);
  void hand_out(NodeIndex update);
  void sum_held_gradients();
  void find_updates_at_servers();
  BufferIndex on_host(const std::string& name, std::int64_t bytes, std::int64_t messages);
  struct OwnedUpdate;
  std::vector<StateIndex> handed_out(const OwnableUpdate&) const;
  std::int64_t add_rows(Exchange&, BufferIndex whole, const OwnedUpdate&);
  void take_parameters();
  void add_up_terms(ValueIndex sum);
  void push_gradients();
  void collect_gradients();
  void add_up_at_servers();
  void publish_parameters();
  void receive_values_made_in(Phase);
  void send_to_other_meshes(ValueIndex value);
  void send_state_copies();

  void receive(int transfer, BufferIndex buffer, bool early);
  void send(int transfer, BufferIndex buffer);

  void emit_node(NodeIndex node);
  BufferIndex workspace(const OpDef&, const OpCall&);
  void emit_rounds(Compute, const NodeLayout&);
  void emit_gradient_norm(const Node&);
  void add_up(NodeIndex node, BufferIndex tile, int copies, BufferIndex into, bool first);
  void emit_sum(const std::vector<ValueIndex>& values, BufferIndex into);
  void emit_global_sum();
  NodeIndex fused_accumulator(const Node&, const NodeLayout&) const;
  BufferIndex result_buffer(const Node&, const NodeLayout&, std::size_t result,
                            const std::vector<BufferIndex>& operands);
  void settle_result(ValueIndex value, BufferIndex buffer, const ShardingSpec& made);

  const Placement& placement_;
  const GraphUses& uses_;
  const Graph& graph_;
  const Plan& plan_;
  MeshIndex mesh_;
  std::vector<StageIndex> stages_;  ///< of this mesh
  Purpose purpose_;
  DeviceKind device_;  ///< whose kernels want memory
  const std::vector<StageRun>& order_;
  const std::vector<StageTransfer>& transfers_;
  const std::vector<std::int64_t>& message_slots_;       ///< [transfer]
  Indexed<NodeIndex, bool> of_weights_;                  ///< of the second part of a split backward
  bool updates_wait_, corrects_updates_;                 ///< for the norm; made before it, where it has a say
  bool defers_updates_;                                  ///< to the forward of the next step
  std::map<NodeIndex, std::vector<NodeIndex>> updates_;  ///< that are left, by the first of their nodes
  std::map<StateIndex, NodeIndex> update_of_;            ///< by the same
  std::map<int, BufferIndex> sent_pieces_;               ///< by transfer
  std::map<StateIndex, BufferIndex> copies_;             ///< of states that are updated before the norm
  bool splits_early_;
  std::map<ValueIndex, BufferIndex> split_sums_;  ///< of gradients, as updates take them
  std::set<ValueIndex> held_sums_;                ///< those of gradients of steps before, added up early
  struct OwnedUpdate {
    int axis = 0;
    int bucket = -1;  ///< of the last of its sums, with which the parameter is handed out
    std::vector<MeshValues::Part> parts;
    bool is_made = false;
  };
  /// Of such an update: a sum of gradients, or what a node on the way makes of it.
  struct InParts {
    OwnedUpdate* of = nullptr;
    std::vector<BufferIndex> at;  ///< [part] once it is there
  };
  std::map<NodeIndex, OwnedUpdate> owned_;  ///< by the update
  std::vector<OwnableUpdate> at_servers_;   ///< those of `owned_`, where servers make all updates
  bool pushes_;          ///< a device's in a training step, of which servers make the updates
  bool serves_ = false;  ///< its instructions are for these servers
  struct {
    BufferIndex loss, gradient_square_sum, lead;
    std::vector<BufferIndex> metrics;
  } taken_;                                    ///< scalars of the mesh that it takes from there
  std::map<ValueIndex, InParts> in_parts_;     ///< what each owner has its rows of
  std::map<int, OwnerCollective> handed_out_;  ///< by bucket, parameters that owners have updated so far
  MeshValues values_;
  std::set<NodeIndex> skipped_;  ///< accumulate nodes fused into their producers
};

}  // namespace alpa
