#pragma once
#include <map>
#include <string>
#include <vector>

#include "libalpa/planner/mesh_prices.h"
#include "libalpa/planner/stage_scope.h"

namespace alpa {

/// Bytes that a variable's choice holds over part of the stage's clock, which ticks once per canonical node.
struct Holding {
  int begin = 0, end = 0;
  std::vector<std::int64_t> bytes;  ///< per choice
};

/// One decision of a stage: which option a node takes, in which layout a value rests, or which the users of a
/// segment start from.
struct StageVariable {
  int node = -1;             ///< canonical node, or
  int value = -1;            ///< canonical value
  std::vector<int> choices;  ///< options of the node, or layouts of the value, as MeshPrices numbers them
  /// [choice] Of a value at rest whose maker's segment has a layout of its own: whether it rests as it is
  /// made, or comes from the segment's layout.
  std::vector<bool> as_made;
  bool sums_in_kernel = false;  ///< the node runs, at this price, only where its operand lies otherwise
  std::vector<double> cost;     ///< seconds per step
  std::vector<double> once;  ///< of those what does not grow with the micro-batches, but for the update's own
  std::vector<std::int64_t> fixed, slot;  ///< bytes all the time; bytes per micro-batch in flight
  Holding passing;                        ///< while the node runs
  Holding again;  ///< from the recomputation of its layer to the last use; empty unless rematerialised
};

/// A value on its way from one variable to another; it is converted where their layouts differ.
struct StageEdge {
  int from = 0, to = 0;          ///< variables
  int from_place = 0;            ///< result of `from`
  int to_place = 0;              ///< operand of `to`
  int value = 0;                 ///< canonical
  Phase phase = Phase::forward;  ///< how often it is paid
  auto operator<=>(const StageEdge&) const = default;
};

/// The decisions of a stage and what they cost, before they are a selection problem.
struct StageVariables {
  std::vector<StageVariable> variables;
  std::map<StageEdge, int> edges;                   ///< -> how often per run of its phase, over all layers
  std::map<int, int> of_node;                       ///< canonical node -> variable
  std::map<int, int> of_value;                      ///< canonical value -> variable of its layout at rest
  std::map<std::pair<int, Phase>, int> of_segment;  ///< canonical value, segment -> variable
  int clock = 0;                                    ///< its end
  std::string why_not;                              ///< a node that has no option; else ""
};

StageVariables stage_variables(const StageScope&, const StageRequest&, const MeshPrices&);

}  // namespace alpa
