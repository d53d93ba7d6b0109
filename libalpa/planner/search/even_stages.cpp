#include "libalpa/planner/search/even_stages.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/work_lower_bound.h"

namespace alpa {
namespace {

/// [layer] What a micro-batch takes of all layers before it, at least.
std::vector<double> work_before(const PlanningGraph& planning, const MeshCosts& costs) {
  std::vector<double> before{0};
  for (const LayerLowerBound& layer : layer_lower_bounds(planning, costs))
    before.push_back(before.back() + layer.micro_batch_s);
  return before;
}

/// Where stages may begin and end: positions of layers, in ascending order.
std::vector<int> cuts_of(const PlanningGraph& planning, const SearchSpace& space) {
  if (!space.cuts.empty()) return space.cuts;
  std::vector<int> all;
  for (int layer = 0; layer <= std::ssize(planning.graph().layers); ++layer) all.push_back(layer);
  return all;
}

bool crosses(const std::vector<int>& needed_cuts, int first, int end) {
  return std::ranges::any_of(needed_cuts, [&](int cut) { return first < cut && cut < end; });
}

}  // namespace

std::vector<StageRequest> evened_out(const PlanningGraph& planning, const CostTable& book,
                                     const SearchSpace& space, const Proposal& proposal) {
  std::vector<StageRequest> stages = proposal.requests;
  const std::vector<StageFloor> floors = stage_floors(planning, book, stages);
  const std::vector<int> cuts = cuts_of(planning, space);
  struct Way {
    double slowest_s = infinity;
    std::size_t begin = 0;  ///< of the last stage, among the cuts
  };
  std::vector<std::vector<Way>> ways(stages.size() + 1, std::vector<Way>(cuts.size()));  // [stages done][cut]
  ways[0][0].slowest_s = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::vector<double> before =
        work_before(planning, book.known(DeviceMesh{stages[s].first_device, stages[s].mesh}));
    const double slowdown = proposal.solutions[s].step_s / floors[s].step_s;
    for (std::size_t end = s + 1; end < cuts.size(); ++end)
      for (std::size_t begin = s; begin < end; ++begin) {
        if (crosses(space.needed_cuts, cuts[begin], cuts[end])) continue;
        const double slowest_s =
            std::max(ways[s][begin].slowest_s, slowdown * (before[cuts[end]] - before[cuts[begin]]));
        Way& way = ways[s + 1][end];
        if (slowest_s < way.slowest_s) way = {slowest_s, begin};
      }
  }
  std::size_t end = cuts.size() - 1;
  if (ways[stages.size()][end].slowest_s == infinity) return stages;
  for (std::size_t s = stages.size(); s-- > 0;) {
    StageRequest& stage = stages[s];
    const bool recomputes_all = stage.recomputed_layers == stage.end_layer - stage.first_layer;
    const std::size_t begin = ways[s + 1][end].begin;
    stage.first_layer = cuts[begin];
    stage.end_layer = cuts[end];
    const int layers = stage.end_layer - stage.first_layer;
    stage.recomputed_layers = recomputes_all ? layers : std::min(stage.recomputed_layers, layers);
    end = begin;
  }
  return stages;
}

}  // namespace alpa
