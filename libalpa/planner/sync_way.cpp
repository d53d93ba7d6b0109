#include "libalpa/planner/sync_way.h"

#include <algorithm>

#include "libalpa/base/words.h"

namespace alpa {
namespace {

constexpr Word<SyncWay> kWays[] = {
    {"as-planned", SyncWay::as_planned, "as the plan has it, which is none of the others"},
    {"all-reduce", SyncWay::all_reduce, "every device updates the whole parameter"},
    {"zero-1", SyncWay::sharded_update, "reduce-scatter once a step, states of the optimizer split"},
    {"zero-2", SyncWay::sharded_gradient, "likewise in each micro-batch, sums of gradients split too"},
    {"zero-3", SyncWay::sharded_parameter, "and the parameter rests split, gathered where it is used"},
    {"factors", SyncWay::factors, "every device makes the whole gradient of what it gathers"},
};

constexpr bool kAmong = true, kNotAmong = false;
constexpr WayRule kMadeOfTerms{WayAxes::repeated, kNotAmong, WayAxes::factors};
constexpr WayRule kAllReduceRules[] = {{WayAxes::terms, kAmong, WayAxes::passed},
                                       {WayAxes::passed, kNotAmong, WayAxes::updated},
                                       {WayAxes::passed, kNotAmong, WayAxes::resting},
                                       kMadeOfTerms};
constexpr WayRule kZero1Rules[] = {{WayAxes::terms, kAmong, WayAxes::passed},
                                   {WayAxes::passed, kAmong, WayAxes::updated},
                                   {WayAxes::passed, kNotAmong, WayAxes::resting},
                                   kMadeOfTerms};
constexpr WayRule kZero2Rules[] = {{WayAxes::terms, kAmong, WayAxes::summed},
                                   {WayAxes::terms, kAmong, WayAxes::updated},
                                   {WayAxes::terms, kNotAmong, WayAxes::resting},
                                   kMadeOfTerms};
constexpr WayRule kZero3Rules[] = {{WayAxes::terms, kAmong, WayAxes::summed},
                                   {WayAxes::terms, kAmong, WayAxes::updated},
                                   {WayAxes::terms, kAmong, WayAxes::resting},
                                   kMadeOfTerms};
constexpr WayRule kFactorRules[] = {{WayAxes::terms, kAmong, WayAxes::none},
                                    {WayAxes::repeated, kNotAmong, WayAxes::summed},
                                    {WayAxes::repeated, kNotAmong, WayAxes::updated},
                                    {WayAxes::repeated, kNotAmong, WayAxes::resting}};

}  // namespace

std::span<const Word<SyncWay>> sync_way_words() { return kWays; }
std::string sync_way_name(SyncWay way) { return name_of(way, sync_way_words()); }

int zero_level(SyncWay way) {
  return way == SyncWay::sharded_update     ? 1
         : way == SyncWay::sharded_gradient ? 2
                                            : 3 * (way == SyncWay::sharded_parameter);
}

std::optional<GradientPath> gradient_path(const GraphUses& uses, const State& parameter) {
  if (parameter.next < 0) return std::nullopt;
  const Graph& graph = uses.graph;
  GradientPath path;
  path.update = value_of(graph, parameter.next).producer;
  for (const ValueIndex operand : node_of(graph, path.update).operands)
    if (const NodeIndex n = value_of(graph, operand).producer;
        n >= 0 && node_of(graph, n).op->sums_micro_batches)
      path.summing = n;
  if (path.summing < 0 || node_of(graph, path.summing).operands.size() != 1) return std::nullopt;
  path.maker = value_of(graph, path.gradient(graph)).producer;
  if (path.maker < 0 || uses.users_of(path.gradient(graph)).size() != 1) return std::nullopt;
  const std::vector<ValueIndex>& made = node_of(graph, path.maker).results;
  path.result = static_cast<int>(std::ranges::find(made, path.gradient(graph)) - made.begin());
  return path;
}

AxisSet splitting_axes(const ShardingSpec& spec) {
  AxisSet axes = 0;
  for (const std::vector<int>& of_dimension : spec.axes)
    for (const int axis : of_dimension) axes |= AxisSet{1} << axis;
  return axes;
}

AxisSet repeated_axes(const Strategy& strategy) {
  AxisSet axes = 0;
  for (std::size_t axis = 0; axis < strategy.size(); ++axis)
    if (strategy[axis] == kIdleAxis) axes |= AxisSet{1} << axis;
  return axes;
}

std::span<const WayRule> way_rules(SyncWay way) {
  switch (way) {
    case SyncWay::as_planned:
      return {};
    case SyncWay::all_reduce:
      return kAllReduceRules;
    case SyncWay::sharded_update:
      return kZero1Rules;
    case SyncWay::sharded_gradient:
      return kZero2Rules;
    case SyncWay::sharded_parameter:
      return kZero3Rules;
    case SyncWay::factors:
      return kFactorRules;
  }
  return {};
}

}  // namespace alpa
