#pragma once
#include <map>
#include <set>
#include <span>
#include <vector>

#include "libalpa/planner/stage/planning_graph.h"
#include "libalpa/planner/stage/stage_request.h"
#include "libalpa/program/program.h"
#include "libalpa/semantics/stage_semantics.h"

namespace alpa {

/// The part of a graph that a stage runs. Equal layers of which the backward recomputes the same are folded:
/// the first stands for all ("canonical").
class StageScope {
 public:
  StageScope(const PlanningGraph&, const StageRequest&);

  const std::vector<NodeIndex>& nodes() const { return nodes_; }     ///< in the graph's order
  const std::vector<ValueIndex>& values() const { return values_; }  ///< that they take or make, ascending
  const std::vector<NodeIndex>& canonical_nodes() const {
    return canonical_nodes_;
  }  ///< by phase, then in order
  std::vector<NodeIndex> order(Phase segment) const { return semantics_.order(segment, kept_); }

  bool has(NodeIndex node) const { return semantics_.has(node); }
  bool makes(ValueIndex value) const { return semantics_.makes(value); }  ///< it is the result of a node here
  NodeIndex canonical_node(NodeIndex node) const;
  ValueIndex canonical_value(ValueIndex value) const;
  int canonical_layer(int layer) const { return canonical_layer_[layer]; }
  /// Where the value is made, or else first used.
  int home_layer(ValueIndex value) const;
  int copies(NodeIndex canonical_node) const { return copies_[canonical_node]; }

  std::vector<NodeIndex> users(ValueIndex value) const;
  bool leaves(ValueIndex value) const { return semantics_.leaves(value); }  ///< some other stage uses it
  std::set<int> layers_it_leaves_for(ValueIndex value) const;               ///< of other stages
  ValueIndex next_of_state(
      ValueIndex state_value) const;  ///< the value that replaces it after the step; -1: none does

  /// Lives from the forward to the backward of a micro-batch.
  bool saved(ValueIndex value) const { return semantics_.is_saved(value); }

  /// Meanwhile in the host's memory.
  bool is_offloaded(ValueIndex value) const { return semantics_.is_offloaded(value); }
  /// Meanwhile on the device.
  bool stays(ValueIndex value) const { return saved(value) && !is_offloaded(value); }

  /// Rests on the host, and is brought to the device for each segment that takes it. (What updates alone take
  /// is in the scope of stage_moves.)
  bool is_fetched(ValueIndex v) const {
    return value(v).kind == ValueKind::state ? planning_.is_parameter_on_host(v) : is_offloaded(v);
  }

  /// Rests in the device's memory, and outlives segments there.
  bool lasts(ValueIndex v) const { return value(v).kind == ValueKind::state ? !is_fetched(v) : stays(v); }

  /// Is made again in the backward of its layer and lives until its last use there (rematerialisation).
  bool is_recomputed(ValueIndex value) const;

  /// An operand that is a value.
  struct Use {
    NodeIndex node;
    int operand;
  };
  /// Those of nodes that run in a segment, recomputed ones in the backward too, in the graph's order.
  std::span<const Use> uses_in(ValueIndex value, Phase segment) const { return uses_.at(segment).of(value); }

  /// Whether a node makes the value in that segment, for the first time or again.
  bool made_in(ValueIndex value, Phase segment) const;

  /// A sum over micro-batches, in memory that lasts a step.
  bool sums_gradient(ValueIndex v) const {
    return makes(v) && value(v).producer >= 0 && node(value(v).producer).op->sums_micro_batches;
  }

  /// Likewise, and may be in a bucket of the plan: no other stage takes it.
  bool may_be_in_bucket(ValueIndex v) const {
    return planning_.has_buckets && sums_gradient(v) && !leaves(v);
  }

  /// A gradient of steps before, which collectives that overlap have added up by the time of the update.
  bool is_summed_early(ValueIndex v) const {
    const StateIndex state = planning_.uses.state_at[v];
    return state >= 0 && graph().states[state].holds_terms &&
           !is_in_turn(LaneKind::collective, planning_.overlap) &&
           planning_.updates != UpdateOrder::next_forward;
  }

  /// Whose kernel may add to this sum over micro-batches; -1: none can.
  NodeIndex kernel_of_sum(NodeIndex node) const { return semantics_.kernel_of_sum(node); }

  /// A node of the forward whose result its layer's backward needs and that was not kept.
  bool runs_again(NodeIndex node) const { return runs_again_[node]; }

  /// The state that starts as this value is updated here (or nowhere).
  bool updates(ValueIndex state_value) const;

  const Graph& graph() const { return planning_.graph(); }
  const Node& node(NodeIndex n) const { return node_of(graph(), n); }
  const Value& value(ValueIndex v) const { return value_of(graph(), v); }
  const PlanningGraph& planning() const { return planning_; }

 private:
  /// Those in one segment, by value.
  class Uses {
   public:
    Uses(const StageScope&, Phase segment);
    std::span<const Use> of(ValueIndex value) const {
      return std::span(all_).subspan(begin_[value], begin_[value + 1] - begin_[value]);
    }

   private:
    std::vector<std::size_t> begin_;  ///< [value] in `all_`
    std::vector<Use> all_;
  };

  StageSemantics semantics_;
  const PlanningGraph& planning_;
  const StageRequest request_;
  std::vector<int> canonical_layer_;  ///< [layer], -1: not in the stage
  std::vector<NodeIndex> nodes_, canonical_nodes_;
  std::vector<ValueIndex> values_;
  Indexed<NodeIndex, int> copies_;  ///< 0 but for canonical ones
  std::map<ValueIndex, ValueIndex> canonical_state_;
  Indexed<ValueIndex, bool> kept_;  ///< saved
  Indexed<NodeIndex, bool> runs_again_;
  std::map<Phase, Uses> uses_;
};

/// Index of a value among a node's operands or results.
int place_of(const std::vector<ValueIndex>& list, ValueIndex value);

}  // namespace alpa
