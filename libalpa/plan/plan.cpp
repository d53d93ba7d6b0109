#include "libalpa/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/units.h"
#include "libalpa/semantics/stage_semantics.h"

namespace alpa {

bool Plan::has_owners() const {
  return !std::ranges::all_of(sync, &std::vector<OwnedRows>::empty, &GradientSync::owners);
}

GradientSync Plan::sync_of(ValueIndex sum) const {
  const auto at = std::ranges::lower_bound(sync, sum, {}, &GradientSync::sum);
  return at != sync.end() && at->sum == sum ? *at : GradientSync{sum};
}

int Plan::devices() const {
  int end = 0;
  for (const DeviceMesh& mesh : meshes) end = std::max(end, mesh.first_device + device_count(mesh.shape));
  return end;
}

int Plan::ranks() const { return devices() + cluster.server_devices(); }

StageIndex stage_of_layer(const Plan& plan, int layer) {
  for (const StageIndex s : plan.stages.indices())
    if (layer >= plan.stages[s].first_layer && layer < plan.stages[s].end_layer) return s;
  assert(false && "no stage has this layer");
  return {};
}

std::string staleness_text(const Plan& plan) {
  if (!plan.has_states_at_servers()) return "";
  return fmt::format(
      "servers hold the optimizer's states; parameters are at most {} old, which differs from run to run: "
      "losses are not to the bit",
      count_text(plan.staleness, "step"));
}

std::vector<int> mesh_of_each_stage(const Plan& plan) {
  std::vector<int> meshes;
  for (const StagePlan& stage : plan.stages) meshes.push_back(stage.mesh);
  return meshes;
}

Indexed<MeshIndex, std::vector<StageIndex>> stages_of_meshes(const Plan& plan) {
  Indexed<MeshIndex, std::vector<StageIndex>> stages(plan.meshes.size());
  for (const StageIndex s : plan.stages.indices()) stages[plan.stages[s].mesh].push_back(s);
  return stages;
}

std::optional<double> Prediction::gap() const {
  if (lower_bound_s <= 0) return std::nullopt;
  return std::max(0.0, step_s / lower_bound_s - 1);
}

MeshIndex busiest_mesh(const Prediction& prediction) {
  const auto busy = [](const MeshTime& t) { return t.compute_s + t.collective_s + t.transfer_s; };
  MeshIndex busiest(0);
  for (const MeshIndex m : prediction.meshes.indices())
    if (busy(prediction.meshes[m]) > busy(prediction.meshes[busiest])) busiest = m;
  return busiest;
}

std::string step_time_text(double step_s, double step_error_s) {
  return step_error_s > 0 ? fmt::format("{} ± {}", seconds_text(step_s), seconds_text(step_error_s))
                          : seconds_text(step_s);
}

std::string why_slower(const Candidate& lost, const Candidate& chosen) {
  const MeshTime &a = lost.busiest, &b = chosen.busiest;
  std::pair<double, const char*> most{0, ""};
  for (const auto& [more_s, what] : {std::pair{a.compute_s - b.compute_s, "compute"},
                                     {a.collective_s - b.collective_s, "collectives"},
                                     {a.transfer_s - b.transfer_s, "transfers"},
                                     {a.idle_s - b.idle_s, "idle"}})
    if (more_s > most.first) most = {more_s, what};
  return most.first > 0 ? fmt::format("slower: {} +{}", most.second, seconds_text(most.first)) : "as fast";
}

bool Plan::offloads() const { return !on_host.empty() || std::ranges::any_of(stages, &StagePlan::offloads); }

std::string spared_layers_text(const StagePlan& stage) {
  if (stage.offloads())
    return fmt::format("layers with activations on the host: {} of {}", stage.recomputed_layers,
                       stage.end_layer - stage.first_layer);
  return "recomputed layers: " + recomputed_layers_text(stage);
}

std::string recomputed_layers_text(const StagePlan& stage) {
  const int layers = stage.end_layer - stage.first_layer;
  if (stage.recomputed_layers == 0) return "none";
  const std::string form(kRecomputeForms[static_cast<std::size_t>(stage.recompute_form)]);
  if (stage.recomputed_layers == layers) return form;
  const std::string count = fmt::format("{} of {}", stage.recomputed_layers, layers);
  return stage.recompute_form == RecomputeForm::full ? count : fmt::format("{}, {}", form, count);
}

}  // namespace alpa
