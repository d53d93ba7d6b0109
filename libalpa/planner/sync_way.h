#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "libalpa/base/constraint.h"
#include "libalpa/semantics/graph_uses.h"
#include "libalpa/sharding/strategy.h"

namespace alpa {

/// How the gradient of one parameter gets to its update over the devices that share out the samples.
enum class SyncWay {
  as_planned,         ///< as the plan has it, which is none of the others
  all_reduce,         ///< every device updates the whole parameter
  sharded_update,     ///< reduce-scatter once a step, states of the optimizer split (ZeRO-1)
  sharded_gradient,   ///< likewise in each micro-batch, so that sums of gradients are split too (ZeRO-2)
  sharded_parameter,  ///< and the parameter rests split, gathered where it is used (ZeRO-3)
  factors,            ///< every device makes the whole gradient of what it gathers (Poseidon, ATC'17)
};

/// As files and tables call them.
std::span<const Word<SyncWay>> sync_way_words();
std::string sync_way_name(SyncWay);

/// The level of ZeRO (SC'20) that a way is; 0: none.
int zero_level(SyncWay);

/// What is between the gradient of a parameter and its next value.
struct GradientPath {
  NodeIndex maker, summing, update;  ///< of the gradient, of its sum over micro-batches, of the parameter
  int result = 0;                    ///< of the maker: the gradient

  ValueIndex gradient(const Graph& graph) const { return node_of(graph, summing).operands[0]; }
  ValueIndex sum(const Graph& graph) const { return node_of(graph, summing).results[0]; }
  /// Whether it can be made of operands that are gathered, which have to be several.
  bool has_factors(const Graph& graph) const {
    const Node& made_by = node_of(graph, maker);
    return made_by.results.size() == 1 && made_by.operands.size() > 1;
  }
};

/// None where nothing updates it, or the sum is added to another first (tied weights).
std::optional<GradientPath> gradient_path(const GraphUses&, const State& parameter);

/// Axes of a mesh, one bit each.
using AxisSet = std::uint32_t;
AxisSet splitting_axes(const ShardingSpec&);
AxisSet repeated_axes(const Strategy&);  ///< along which all devices do the same

/// Of what a way speaks: along which axes of the mesh ...
enum class WayAxes {
  terms,     ///< each device makes a term of the gradient
  repeated,  ///< all make the same of it
  factors,   ///< an operand of the maker rests split
  none,      ///< (of the sum)
  passed,    ///< the sum is one of terms until the end of the step
  summed,    ///< the sum is split
  updated,   ///< the update takes the sum split
  resting,   ///< the parameter rests split
};

/// Some axes are among others, or none is.
struct WayRule {
  WayAxes axes;
  bool are_among;
  WayAxes others;

  bool allows(AxisSet these, AxisSet those) const { return ((are_among ? ~those : those) & these) == 0; }
};

/// What makes a way of layouts and strategies: all of these. Where no axis has terms or factors, there is
/// nothing to synchronise and nothing is asked. Empty: as_planned.
std::span<const WayRule> way_rules(SyncWay);

}  // namespace alpa
