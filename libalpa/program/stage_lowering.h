#pragma once
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "libalpa/program/lower.h"

namespace alpa {

/// Turns the nodes of one stage into the instructions of its segments.
///
/// A value is kept under the layouts it was made or converted in; within a segment each layout of a value is
/// made once.
class StageLowering {
 public:
  /// Keeps references during run().
  StageLowering(const Graph&, const Plan&, int stage, Purpose);

  /// Buffers and segments; schedule, slots, mesh and offsets are left to the caller.
  StageProgram run();

 private:
  using Version = std::pair<int, ShardingSpec>;

  bool here(int node) const;
  ShardingSpec resting_layout(int value) const;
  const StagePlan& stage_plan() const { return plan_.stages[static_cast<std::size_t>(stage_)]; }

  void find_consumers();
  void find_saved_values();
  std::vector<int> nodes_of(Phase) const;
  std::vector<int> recomputed_nodes(int layer) const;

  void lower_forward();
  void lower_backward();
  void lower_update();
  void begin_segment(SegmentKind);
  void receive_values_made_in(Phase);
  void send_if_crossing(int value);
  void send_state_copies();

  int new_buffer(std::string name, int value, ShardingSpec layout, TensorType tile, Residence);
  int scratch(const std::string& name, std::int64_t bytes, Residence = Residence::segment);
  void send(int transfer, int buffer);
  int resting_buffer(int value, DType);
  int state_buffer(int state);
  int obtain(int value, const ShardingSpec& layout);
  int fetch_resting(int value);
  int converted(int value, int from, const ShardingSpec& from_layout, const ShardingSpec& to,
                int destination);

  void emit(Instruction);
  void emit_node(int node);
  void emit_gradient_norm(const Node&);
  void emit_loss_sum();
  int fused_accumulator(const Node&, const NodeLayout&) const;
  int result_buffer(const Node&, const NodeLayout&, std::size_t result, const std::vector<int>& operands);
  void settle_result(int value, int buffer, const ShardingSpec& made);

  const Graph& graph_;
  const Plan& plan_;
  int stage_;
  Purpose purpose_;
  Conversions conversions_;
  StageProgram program_;
  SegmentKind segment_ = SegmentKind::forward;
  std::vector<std::vector<int>> consumers_;  ///< [value] -> nodes of this stage
  std::set<int> saved_;                      ///< values that live from forward to backward
  std::map<int, int> kept_;                  ///< value -> buffer that outlives segments
  std::map<Version, int> available_;         ///< in the current segment
  std::set<int> skipped_;                    ///< accumulate nodes fused into their producers
};

}  // namespace alpa
