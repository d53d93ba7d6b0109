#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libalpa/planner/stage/mesh_costs.h"
#include "libalpa/planner/stage/stage_scope.h"
#include "libalpa/solver/selection/selection_problem.h"

namespace alpa {

/// One decision of a stage: which option a node takes, in which layout a value rests, or which the users of a
/// segment start from.
struct StageVariable {
  NodeIndex node;                ///< canonical node, or
  ValueIndex value;              ///< canonical value
  std::optional<Phase> segment;  ///< whose users start from that layout of the value; none: it rests in it
  std::vector<int> choices;      ///< options of the node, or layouts of the value, as MeshCosts numbers them
  /// [choice] Of a value at rest whose maker's segment has a layout of its own: whether it rests as it is
  /// made, or comes from the segment's layout.
  std::vector<bool> as_made;
  /// [choice] Of a segment's layout of a value that rests in memory that lasts: whether it is that it rests
  /// in.
  std::vector<bool> at_rest;
  bool sums_in_kernel = false;  ///< the node runs, at this price, only where its operand lies otherwise
  std::vector<double> cost;     ///< seconds per step
  std::vector<double> once;  ///< of those what does not grow with the micro-batches, but for the update's own
  std::vector<std::int64_t> resident;              ///< bytes all the time
  std::vector<std::int64_t> per_micro_batch;       ///< bytes, for each in flight
  std::vector<SelectionProblem::Memory> held;      ///< at times of StageClock
  std::vector<SelectionProblem::Memory> messages;  ///< likewise, to and from other stages: no more than that

  /// But for no bytes, or no time.
  void hold(SelectionProblem::Memory memory) {
    const auto is_none = [](std::int64_t bytes) { return bytes == 0; };
    if (memory.begin < memory.end && !std::ranges::all_of(memory.bytes, is_none))
      held.push_back(std::move(memory));
  }
  void pay_once(std::size_t choice, double seconds) {
    cost[choice] += seconds;
    once[choice] += seconds;
  }
};

/// Of a variable that is a node's.
inline const NodeOption& option_of(const StageVariable& variable, std::size_t choice,
                                   const MeshCosts& mesh_costs) {
  return mesh_costs.options(variable.node)[variable.choices[choice]];
}

/// A value on its way from one variable to another; it is converted where their layouts differ.
struct StageEdge {
  int from = 0, to = 0;          ///< variables
  int from_place = 0;            ///< result of `from`, or
  bool from_operand = false;     ///< its operand: in an update others start from how the last user takes it
  int to_place = 0;              ///< operand of `to`
  ValueIndex value{0};           ///< canonical
  Phase phase = Phase::forward;  ///< how often it is paid
  bool in_bucket = false;        ///< it may be added up together with others
  bool is_early = false;         ///< StageScope::is_summed_early
  auto operator<=>(const StageEdge&) const = default;
};

/// What goes along an edge.
struct StageFlow {
  int count = 0;      ///< how often per run of its phase, over all layers
  ValueIndex value;   ///< as below
  NodeIndex user;     ///< one such value of the graph, and the node that takes it; -1: it is laid out
  bool stays = true;  ///< in the layer that the value belongs to
};

/// Pairs of choices of two variables that a limit forbids.
struct StageTie {
  int from = 0, to = 0;       ///< variables
  std::vector<bool> allowed;  ///< [choice of `from`][choice of `to`]
  bool stays = true;          ///< as of StageFlow
};

/// What a variable's choice says of the value at that end of an edge.
struct EdgeEnd {
  int layout = 0;
  bool at_rest = false;  ///< of a segment's layout: it is that in which the value rests
  bool as_made = false;  ///< of the layout at rest: it is that in which the value is made
  auto operator<=>(const EdgeEnd&) const = default;
};

/// [piece] What a value holds on its way between two ends; `as_made`: it rests as it is made.
using HeldBytes =
    std::function<std::vector<std::int64_t>(const EdgeEnd& from, const EdgeEnd& to, bool as_made)>;

/// Memory that depends on both ends of an edge: that of a conversion, which is there or is not.
struct StageConversion {
  StageEdge edge;
  int rest = -1;                            ///< the variable whose `as_made` matters too; -1: none
  std::vector<std::pair<int, int>> pieces;  ///< times
  HeldBytes held;
  std::optional<std::int64_t> most_bytes;  ///< no piece takes more; none: not in 64 bits
};

/// The decisions of a stage and what they cost, before they are a selection problem.
struct StageVariables {
  std::vector<StageVariable> variables;
  std::map<StageEdge, StageFlow> edges;
  std::vector<StageTie> ties;
  std::map<NodeIndex, int> of_node;    ///< canonical node -> variable
  std::map<ValueIndex, int> of_value;  ///< canonical value -> variable of its layout at rest
  std::map<std::pair<ValueIndex, Phase>, int> of_segment;  ///< canonical value, segment -> variable
  std::vector<StageConversion> conversions;
  std::shared_ptr<const void> memory;  ///< what their `held` refers to
  int clock = 0;                       ///< its end
  std::string why_not;                 ///< what has no choice; else ""
};

StageVariables stage_variables(const StageScope&, const StageRequest&, const MeshCosts&);

}  // namespace alpa
