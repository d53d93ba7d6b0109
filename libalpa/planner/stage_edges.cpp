#include "libalpa/planner/stage_edges.h"

#include "libalpa/base/infinity.h"

namespace alpa {

std::vector<double> edge_seconds(const StageVariables& stage, const StageEdge& edge, std::size_t from,
                                 const MeshPrices& prices) {
  const int start = layout_at_start(stage, edge, from, prices);
  const StageVariable& at_end = stage.variables[static_cast<std::size_t>(edge.to)];
  const bool from_maker = stage.variables[static_cast<std::size_t>(edge.from)].node >= 0;
  const std::vector<double>& converted = prices.conversion_seconds(edge.value, start);
  std::vector<double> seconds(at_end.choices.size());
  for (std::size_t to = 0; to < seconds.size(); ++to) {
    const int end = layout_at_end(stage, edge, to, prices);
    if (!at_end.as_made.empty() && from_maker) {
      seconds[to] = at_end.as_made[to] == (start == end) ? 0 : infinity;
    } else if (start != end && (at_end.as_made.empty() || !at_end.as_made[to])) {
      seconds[to] = converted[static_cast<std::size_t>(end)];
      if (at_end.sums_in_kernel)
        seconds[to] += prices.options(at_end.node)[static_cast<std::size_t>(at_end.choices[to])].seconds;
    }
  }
  return seconds;
}

int layout_at_start(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                    const MeshPrices& prices) {
  const StageVariable& from = stage.variables[static_cast<std::size_t>(edge.from)];
  if (from.node < 0) return from.choices[choice];
  const NodeOption& option = prices.options(from.node)[static_cast<std::size_t>(from.choices[choice])];
  return option.results[static_cast<std::size_t>(edge.from_place)];
}

int layout_at_end(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                  const MeshPrices& prices) {
  const StageVariable& to = stage.variables[static_cast<std::size_t>(edge.to)];
  if (to.node < 0) return to.choices[choice];
  const NodeOption& option = prices.options(to.node)[static_cast<std::size_t>(to.choices[choice])];
  return option.operands[static_cast<std::size_t>(edge.to_place)];
}

}  // namespace alpa
