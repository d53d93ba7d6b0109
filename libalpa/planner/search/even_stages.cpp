#include "libalpa/planner/search/even_stages.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/least_slowest.h"
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
  std::vector<std::vector<double>> before;  // [stage]
  for (const StageRequest& stage : stages)
    before.push_back(work_before(planning, book.known(DeviceMesh{stage.first_device, stage.mesh})));
  const std::vector<int> ends = least_slowest_ends(
      static_cast<int>(stages.size()), static_cast<int>(cuts.size()) - 1, [&](int s, int begin, int end) {
        if (crosses(space.needed_cuts, cuts[begin], cuts[end])) return infinity;
        const double slowdown = proposal.solutions[s].step_s / floors[s].step_s;
        return slowdown * (before[s][cuts[end]] - before[s][cuts[begin]]);
      });
  for (std::size_t s = 0; s < ends.size(); ++s) {
    StageRequest& stage = stages[s];
    const bool recomputes_all = stage.recomputed_layers == stage.end_layer - stage.first_layer;
    stage.first_layer = s > 0 ? cuts[ends[s - 1]] : cuts.front();
    stage.end_layer = cuts[ends[s]];
    const int layers = stage.end_layer - stage.first_layer;
    stage.recomputed_layers = recomputes_all ? layers : std::min(stage.recomputed_layers, layers);
  }
  return stages;
}

}  // namespace alpa
