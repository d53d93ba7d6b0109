#pragma once
#include <set>
#include <vector>

#include "libalpa/program/purpose.h"
#include "libalpa/program/stage_values.h"

namespace alpa {

/// Turns the nodes of one stage into the instructions of its segments.
class StageLowering {
 public:
  /// Keeps references during run().
  StageLowering(const Graph&, const Plan&, int stage, Purpose, const std::string& device,
                const std::vector<StageRun>& order, const std::vector<std::int64_t>& message_slots);

  /// Buffers and segments; schedule, slots and offsets are left to the caller.
  MeshProgram run();

 private:
  bool here(int node) const;
  const StagePlan& stage_plan() const { return plan_.stages[static_cast<std::size_t>(stage_)]; }

  void find_consumers();
  void keep_for_weights();
  bool has(SegmentKind) const;  ///< whether the schedule has runs of that kind
  std::vector<int> nodes_of(Phase) const;
  std::vector<int> recomputed_nodes(int layer) const;

  void lower_forward();
  void lower_backward(SegmentKind);
  void lower_update();
  void receive_values_made_in(Phase);
  void send_if_crossing(int value);
  void send_state_copies();

  void send(int transfer, int buffer);

  void emit_node(int node);
  void emit_rounds(Compute, const NodeLayout&);
  void emit_gradient_norm(const Node&);
  void emit_sum(const std::vector<int>& values, int into);
  void emit_global_sum(std::vector<int> scalars);
  int fused_accumulator(const Node&, const NodeLayout&) const;
  int result_buffer(const Node&, const NodeLayout&, std::size_t result, const std::vector<int>& operands);
  void settle_result(int value, int buffer, const ShardingSpec& made);

  const Graph& graph_;
  const Plan& plan_;
  int stage_;
  Purpose purpose_;
  bool has_workspaces_;  ///< kernels want scratch memory in the arena
  const std::vector<StageRun>& order_;
  const std::vector<std::int64_t>& message_slots_;  ///< [transfer]
  std::vector<bool> of_weights_;                    ///< [node] of the second part of a split backward
  StageValues values_;
  std::vector<std::vector<int>> consumers_;  ///< [value] -> nodes of this stage
  std::set<int> skipped_;                    ///< accumulate nodes fused into their producers
};

}  // namespace alpa
