#include "libalpa/planner/search/offered_spaces.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/planner/search/constrained_space.h"
#include "libalpa/planner/search/layer_clustering.h"

namespace alpa {
namespace {

/// The dynamic program looks at the square of their number, on every number of devices.
constexpr int kMostClusters = 128;

}  // namespace

void OfferedSpaces::cut(const Graph& graph, int devices) {
  const int layers = static_cast<int>(graph.layers.size());
  if (options_.layers > layers)
    throw Error(
        ErrorKind::usage,
        fmt::format("{} clusters of layers asked for, the model has {} layers", options_.layers, layers),
        fmt::format("--layers {} or fewer; 0 leaves it to the planner", layers));
  const int clusters = options_.layers > 0 ? options_.layers : std::min(layers, kMostClusters);
  allowed_ = SearchSpace{};
  allowed_.cuts = cluster_chain(layer_chain(graph), clusters);
  allowed_.devices = devices;
  narrow(allowed_, options_.constraints, graph);
}

SearchSpace OfferedSpaces::all() const {
  SearchSpace space = allowed_;
  space.schedule = options_.schedule;
  space.rematerialize = layer_forms(!leaves_selective_out());
  static_cast<StageEffort&>(space) = stage_effort(options_.effort);
  space.mesh_axes = mesh_axes(options_);
  space.cache = options_.cache;
  space.threads = thread_count(options_.threads);
  return space;
}

/// What becomes of what a layer made.
std::vector<LayerForm> OfferedSpaces::layer_forms(bool is_selective_too) const {
  if (offloads_activations(options_)) return {std::nullopt, RecomputeForm::offload};
  switch (options_.rematerialize) {
    case Rematerialize::never:
      return {std::nullopt};
    case Rematerialize::always:
      return {RecomputeForm::full};
    case Rematerialize::selective:
      return {RecomputeForm::selective};
    case Rematerialize::automatic:
      break;
  }
  if (!is_selective_too) return {std::nullopt, RecomputeForm::full};
  return {std::nullopt, RecomputeForm::full, RecomputeForm::selective};
}

bool OfferedSpaces::leaves_selective_out() const {
  return options_.rematerialize == Rematerialize::automatic && !offloads_activations(options_) &&
         stage_effort(options_.effort).selective_gain > 0;
}

SearchSpace OfferedSpaces::one_stage() const {
  SearchSpace one = all();
  one.name = "intra-only";
  one.most_stages = std::min(one.most_stages, 1);
  return one;
}

SearchSpace OfferedSpaces::one_device_each() const {
  SearchSpace each = all();
  each.name = "inter-only";
  each.single_devices = true;
  each.least_stages = std::max(each.least_stages, each.devices);
  return each;
}

SearchSpace OfferedSpaces::any_stages(const PlanSpace& within) const {
  SearchSpace any = all();
  any.name = std::string("search") + (within.mesh_axes > 2 ? " on three axes" : "") +
             (within.is_selective && leaves_selective_out() ? " with selective recomputation" : "");
  any.mesh_axes = within.mesh_axes;
  any.rematerialize = layer_forms(within.is_selective);
  return any;
}

std::size_t OfferedSpaces::mesh_count(int axes) const {
  return stage_meshes(any_stages({axes}), cluster_).size();
}

}  // namespace alpa
