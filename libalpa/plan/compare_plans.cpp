#include "libalpa/plan/compare_plans.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "libalpa/base/options.h"
#include "libalpa/base/units.h"
#include "libalpa/graph/training_options.h"

namespace alpa {
namespace {

/// By sum, where there are some.
std::map<ValueIndex, std::vector<OwnedRows>> owners_of(const Plan& plan) {
  std::map<ValueIndex, std::vector<OwnedRows>> owners;
  for (const GradientSync& sync : plan.sync)
    if (!sync.owners.empty()) owners[sync.sum] = sync.owners;
  return owners;
}

/// By sum, where it has them: bucket, turn and parts.
std::map<ValueIndex, std::array<int, 3>> turns_of(const Plan& plan) {
  std::map<ValueIndex, std::array<int, 3>> turns;
  for (const GradientSync& sync : plan.sync)
    if (sync.bucket >= 0 || sync.turn > 0 || sync.parts > 1)
      turns[sync.sum] = {sync.bucket, sync.turn, sync.parts};
  return turns;
}

/// [training] of the plan's model, a setting a line, in the order of their one list.
std::istringstream training_lines(const Plan& plan) {
  TomlDocument document = TomlDocument::parse(plan.model_toml, "model of the plan");
  TrainingOptions training;
  read_options(document.root().table("training"), training);
  document.root().skip();
  document.finish();
  return std::istringstream(options_text(training));
}

/// "training: steps = 20 | steps = 30", a line for each setting that differs.
std::string training_differences(const Plan& a, const Plan& b) {
  std::istringstream left = training_lines(a), right = training_lines(b);
  std::string text;
  for (std::string mine, other; std::getline(left, mine) && std::getline(right, other);)
    if (mine != other) text += fmt::format("training: {} | {}\n", mine, other);
  return text;
}

}  // namespace

std::string compare_plans(const Plan& a, const Plan& b) {
  std::string text;
  const auto differ = [&](const std::string& what, const std::string& left, const std::string& right) {
    if (left != right) text += fmt::format("{}: {} | {}\n", what, left, right);
  };
  differ("model", a.model_name, b.model_name);
  differ("graph", a.graph_fingerprint, b.graph_fingerprint);
  differ("profile", a.profile_fingerprint, b.profile_fingerprint);
  differ("extrapolated from", a.extrapolated_from, b.extrapolated_from);
  differ("servers", std::to_string(a.cluster.servers), std::to_string(b.cluster.servers));
  differ("cluster", cluster_fingerprint(a.cluster), cluster_fingerprint(b.cluster));
  differ("method", a.method, b.method);
  differ("schedule", a.schedule, b.schedule);
  differ("overlap", overlap_name(a.overlap), overlap_name(b.overlap));
  differ("updates", update_order_name(a.updates), update_order_name(b.updates));
  const auto staleness = [](const Plan& plan) {
    return plan.has_states_at_servers() ? std::to_string(plan.staleness) : "none";
  };
  differ("staleness", staleness(a), staleness(b));
  differ("micro-batches", std::to_string(a.micro_batches), std::to_string(b.micro_batches));
  differ("samples of a micro-batch", std::to_string(a.micro_batch_samples),
         std::to_string(b.micro_batch_samples));
  differ("stages", std::to_string(a.stages.size()), std::to_string(b.stages.size()));
  differ("predicted step time", seconds_text(a.prediction.step_s), seconds_text(b.prediction.step_s));
  for (const StageIndex s : indices_to<StageIndex>(std::min(a.stages.size(), b.stages.size()))) {
    const auto words = [&](const Plan& plan) {
      const StagePlan& stage = plan.stages[s];
      const DeviceMesh& mesh = plan.mesh_of(s);
      return fmt::format("layers {}-{}, mesh {} from device {}, {}", stage.first_layer, stage.end_layer - 1,
                         mesh_text(mesh.shape), mesh.first_device, spared_layers_text(stage));
    };
    differ(fmt::format("stage {}", s), words(a), words(b));
  }
  std::size_t strategies = 0, layouts = 0;
  for (const NodeIndex n : indices_to<NodeIndex>(std::min(a.node_strategy.size(), b.node_strategy.size())))
    strategies += a.node_strategy[n] != b.node_strategy[n];
  for (const ValueIndex v : indices_to<ValueIndex>(std::min(a.value_layout.size(), b.value_layout.size())))
    layouts += a.value_layout[v] != b.value_layout[v] || a.segment_layouts[v] != b.segment_layouts[v];
  if (strategies > 0)
    text += fmt::format("strategies of {} of {} nodes differ\n", strategies, a.node_strategy.size());
  if (layouts > 0) text += fmt::format("layouts of {} of {} values differ\n", layouts, a.value_layout.size());
  if (a.inputs != b.inputs) text += "inputs are laid out in another way\n";
  if (owners_of(a) != owners_of(b))
    text += "updates are shared out between devices, or servers, in another way\n";
  if (turns_of(a) != turns_of(b))
    text += "sums of gradients are added up in other buckets or parts, or in another order\n";
  if (a.on_host != b.on_host) text += "other states rest in the host's memory\n";
  if (a.transfers != b.transfers) text += "values cross between meshes in another way\n";
  if (a.model_toml != b.model_toml) text += training_differences(a, b);
  if (text.empty() && !(a.prediction == b.prediction)) text = "details of the prediction differ\n";
  if (text.empty() && !(a == b))
    text = "the model's TOML differs, but neither its graph nor its [training]\n";
  return text;
}

}  // namespace alpa
