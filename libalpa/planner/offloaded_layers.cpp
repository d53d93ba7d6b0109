#include "libalpa/planner/offloaded_layers.h"

#include <algorithm>

#include "libalpa/planner/predict.h"
#include "libalpa/program/program.h"

namespace alpa {
namespace {

/// False where no stage has any more layers to do so with.
bool offload_more(Plan& plan, int layers) {
  bool any = false;
  for (StagePlan& stage : plan.stages) {
    const int left = stage.end_layer - stage.first_layer - stage.recomputed_layers;
    if (!stage.offloads() || left == 0) continue;
    stage.recomputed_layers += std::min(layers, left);
    any = true;
  }
  return any;
}

class FewerLayers {
 public:
  FewerLayers(const Plan& plan, const Graph& graph, const CostModel& costs)
      : plan_(plan), graph_(graph), costs_(costs), fewer_(plan.meshes.size(), 0) {}

  /// Of each mesh as many fewer as leave it within its memory: twice as many each time, while they do, then
  /// half as many more.
  Plan fewest() {
    Indexed<MeshIndex, int> step(plan_.meshes.size(), 1);
    Indexed<MeshIndex, bool> grows(plan_.meshes.size(), true);
    for (int most = layers(); most > 0 && std::ranges::any_of(step, [](int s) { return s > 0; });) {
      Indexed<MeshIndex, int> tried = fewer_;
      for (const MeshIndex m : tried.indices()) tried[m] = std::min(most, tried[m] + step[m]);
      const Plan other = with_fewer(tried);
      for (const MeshIndex m : tried.indices()) {
        const bool fits = has_room(other, m) && tried[m] > fewer_[m];
        grows[m] = grows[m] && fits;
        if (fits) fewer_[m] = tried[m];
        step[m] = grows[m] ? 2 * step[m] : step[m] / 2;
      }
    }
    return with_fewer(fewer_);
  }

 private:
  /// The most that a stage offloads.
  int layers() const {
    int most = 0;
    for (const StagePlan& stage : plan_.stages)
      if (stage.offloads()) most = std::max(most, stage.recomputed_layers);
    return most;
  }

  bool has_room(const Plan& plan, MeshIndex m) const {
    return plan.prediction.meshes[m].memory.total <= costs_.on(plan.meshes[m]).cluster().memory_bytes;
  }

  Plan with_fewer(const Indexed<MeshIndex, int>& fewer) const {
    Plan plan = plan_;
    for (StagePlan& stage : plan.stages) {
      if (!stage.offloads()) continue;
      stage.recomputed_layers = std::max(0, stage.recomputed_layers - fewer[stage.mesh]);
      if (stage.recomputed_layers == 0) stage.recompute_form = RecomputeForm::full;
    }
    predict_steady(plan, graph_, costs_);
    return plan;
  }

  const Plan plan_;
  const Graph& graph_;
  const CostModel& costs_;
  Indexed<MeshIndex, int> fewer_;
};

}  // namespace

void choose_offloaded_layers(Plan& plan, const Graph& graph, const CostModel& costs,
                             const std::function<bool(const Plan&)>& fits) {
  if (!std::ranges::any_of(plan.stages, &StagePlan::offloads)) return;
  Plan other = FewerLayers(plan, graph, costs).fewest();
  const auto offer = [&] {
    if (fits(other) && (other.prediction.step_s < plan.prediction.step_s || !fits(plan))) plan = other;
  };
  offer();
  for (int layers = 1; !is_in_turn(LaneKind::fetch, plan.overlap) && offload_more(other, layers);
       layers *= 2) {
    predict_steady(other, graph, costs);
    offer();
  }
}

}  // namespace alpa
