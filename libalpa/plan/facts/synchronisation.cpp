#include "libalpa/plan/facts/synchronisation.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace alpa {
namespace {

/// Whether a node has all of an operand along the axis that rests split over it.
bool gathers_along(const Placement& placement, NodeIndex n, MeshIndex mesh, int axis) {
  const Node& node = node_of(placement.graph(), n);
  const NodeLayout& layout = placement.node_layout(n);
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (!splits_along(layout.operands[i], axis) &&
        splits_along(placement.layout_at_rest(node.operands[i], mesh), axis))
      return true;
  return false;
}

}  // namespace

std::string synchronisation_text(const Placement& placement, MeshIndex mesh, const Conversions& conversions,
                                 ValueIndex sum) {
  const Graph& graph = placement.graph();
  const Plan& plan = placement.plan();
  const MeshShape& shape = plan.meshes[mesh].shape;
  std::vector<std::string> words;
  const auto add_steps = [&](const ShardingSpec& from, const ShardingSpec& to, const char* when) {
    const Conversion* const steps = conversions.between(value_of(graph, sum).type, from, to);
    for (const ConversionStep& step : steps ? *steps : Conversion())
      words.push_back(fmt::format("{} over {} devices (axis {}){}", conversion_name(step.kind),
                                  shape[step.axis], step.axis, when));
  };
  const NodeIndex summing = value_of(graph, sum).producer;
  const Node& sums = node_of(graph, summing);
  for (std::size_t i = 0; i < sums.operands.size(); ++i) {
    const NodeIndex maker = value_of(graph, sums.operands[i]).producer;
    if (maker < 0 || placement.mesh_of_node(maker) != mesh) continue;
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
      if (plan.node_strategy[maker][axis] == kIdleAxis && gathers_along(placement, maker, mesh, axis))
        words.push_back(
            fmt::format("made by all {} devices of gathered factors (axis {})", shape[axis], axis));
    const std::vector<ValueIndex>& made = node_of(graph, maker).results;
    const auto result = std::ranges::find(made, sums.operands[i]) - made.begin();
    add_steps(placement.node_layout(maker).results[static_cast<std::size_t>(result)],
              placement.node_layout(summing).operands[i], ", in each micro-batch");
  }
  add_steps(placement.layout_at_rest(sum, mesh), placement.layout_in_update(sum, mesh), "");
  if (words.empty()) return "no communication";
  if (std::ranges::count(plan.sync, sum, &GradientSync::sum) > 0) words.emplace_back("in a bucket");
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace alpa
