#include "libalpa/plan/explain.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "libalpa/base/options.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_facts.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/plan/stage_layouts.h"

namespace alpa {
namespace {

std::string layer_range(const Graph& graph, const StagePlan& stage) {
  const std::string& first = graph.layers[stage.first_layer];
  const std::string& last = graph.layers[static_cast<std::size_t>(stage.end_layer) - 1];
  return stage.end_layer - stage.first_layer == 1 ? first : fmt::format("{} .. {}", first, last);
}

/// How the work of a stage is split: strategies of its matrix products and attentions, by name.
std::string work_lines(const Plan& plan, const Graph& graph, StageIndex stage) {
  std::map<std::string, int> lines;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (node.phase != Phase::forward || stage_of_layer(plan, node.layer) != stage) continue;
    const std::vector<TensorType> types = operand_types(graph, node);
    const std::string how = strategy_text(*node.op, {types, node.attributes}, plan.node_strategy[n]);
    ++lines[fmt::format("{:<20} {}", node.op->name, how)];
  }
  std::string text;
  for (const auto& [line, count] : lines) text += fmt::format("    {:>3} x {}\n", count, line);
  return text;
}

std::string recomputation_text(const StagePlan& stage) {
  const int layers = stage.end_layer - stage.first_layer;
  if (stage.recomputed_layers == 0) return "";
  if (stage.recomputed_layers == layers) return ", recomputes its forward in the backward";
  return fmt::format(", recomputes its first {} of {} layers in the backward", stage.recomputed_layers,
                     layers);
}

std::string stage_text(const Placement& placement, StageIndex stage) {
  const Plan& plan = placement.plan();
  const Graph& graph = placement.graph();
  const StagePlan& s = plan.stages[stage];
  const DeviceMesh& mesh = plan.mesh_of(stage);
  const int devices = device_count(mesh.shape);
  std::string text = fmt::format("\nstage {}: layers {} to {} ({}) on {} device{} {} to {}, mesh {}{}\n",
                                 stage, s.first_layer, s.end_layer - 1, layer_range(graph, s), devices,
                                 devices == 1 ? "" : "s", mesh.first_device, mesh.first_device + devices - 1,
                                 mesh_text(mesh.shape), recomputation_text(s));
  const StageIndex first = stages_of_meshes(plan)[s.mesh].front();
  if (first != stage)
    text += fmt::format("  time and memory: see stage {}, on the same devices\n", first);
  else if (s.mesh < std::ssize(plan.prediction.meshes)) {
    const MeshPrediction& p = plan.prediction.meshes[s.mesh];
    const double step = plan.prediction.step_s;
    const auto share = [&](double s_) {
      return fmt::format("{} ({:.1f} %)", seconds_text(s_), step > 0 ? 100 * s_ / step : 0);
    };
    text += fmt::format("  time    compute {}, collectives {}, transfers {}, idle {}\n", share(p.compute_s),
                        share(p.collective_s), share(p.transfer_s), share(p.idle_s));
    text += fmt::format(
        "  memory  {} of {} per device: parameters {}, optimizer {}, gradients {}, activations {} x {} in "
        "flight, workspace {}\n",
        bytes_text(p.memory.total), bytes_text(plan.cluster.memory_bytes), bytes_text(p.memory.parameters),
        bytes_text(p.memory.optimizer), bytes_text(p.memory.gradients), p.in_flight,
        bytes_text(p.memory.activations / std::max<std::int64_t>(1, p.in_flight)),
        bytes_text(p.memory.workspace));
    if (const std::int64_t reserved = reserved_bytes(plan.cluster.kind); reserved > 0)
      text += fmt::format("          beside it {} of each GPU are kept for CUDA and its libraries\n",
                          bytes_text(reserved));
  }
  text += stage_layouts(placement, stage);
  text += "  forward work (factor:axis that is split)\n" + work_lines(plan, graph, stage);
  return text;
}

/// What makes the step as long as it is: the largest part of the busiest mesh's time; and memory, where a
/// mesh is nearly full, or recomputation, which a pin may ask for where memory is free.
std::string binding(const Plan& plan) {
  const Indexed<MeshIndex, MeshPrediction>& meshes = plan.prediction.meshes;
  const MeshIndex busiest = busiest_mesh(plan.prediction);
  const MeshTime& p = meshes[busiest];
  const Indexed<MeshIndex, std::vector<StageIndex>> stages = stages_of_meshes(plan);
  const auto words = [&](MeshIndex mesh) {
    return fmt::format("stage{} {}", stages[mesh].size() == 1 ? "" : "s", fmt::join(stages[mesh], ", "));
  };
  const char* what = p.compute_s >= std::max({p.collective_s, p.transfer_s, p.idle_s}) ? "compute"
                     : p.collective_s >= std::max(p.transfer_s, p.idle_s)              ? "collectives"
                     : p.transfer_s >= p.idle_s ? "transfers between stages"
                                                : "waiting for other stages";
  std::string text = fmt::format("what binds: {} on {}", what, words(busiest));
  constexpr double nearly_full = 0.9;
  for (const MeshIndex m : indices_to<MeshIndex>(std::min(meshes.size(), plan.meshes.size()))) {
    const double used =
        static_cast<double>(meshes[m].memory.total) / static_cast<double>(plan.cluster.memory_bytes);
    const bool recomputes =
        std::ranges::any_of(stages[m], [&](StageIndex s) { return plan.stages[s].recomputed_layers > 0; });
    if (used >= nearly_full)
      text += fmt::format("; memory on {} ({:.0f} % full{})", words(m), 100 * used,
                          recomputes ? ", recomputes its forward" : "");
    else if (recomputes)
      text += fmt::format("; recomputation on {} (memory {:.0f} % full)", words(m), 100 * used);
  }
  return text;
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

std::string gap_text(const Prediction& p) {
  if (p.lower_bound_s <= 0 || p.estimate_s <= 0) return "no lower bound is known";
  return fmt::format(
      "the search's estimate {}, lower bound on such estimates {}: at most {:.2f} % above the best of {}{}",
      seconds_text(p.estimate_s), seconds_text(p.lower_bound_s),
      100 * std::max(0.0, p.estimate_s / p.lower_bound_s - 1), p.bound_covers,
      p.step_s < p.lower_bound_s ? "; the predicted step, simulated in more detail, is below both" : "");
}

std::string explain(const Plan& plan, const Graph& graph) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  std::string text =
      fmt::format("{} on {} of '{}', {}, {} of {}, schedule {}, by {}\n", plan.model_name,
                  count_text(plan.devices(), "device"), plan.cluster.name,
                  count_text(std::ssize(plan.stages), "stage"), count_text(plan.micro_batches, "micro-batch"),
                  count_text(plan.micro_batch_samples, "sample"), plan.schedule, plan.method);
  const bool is_measured = !plan.profile_fingerprint.empty();
  text += fmt::format("predicted step time {}", seconds_text(plan.prediction.step_s));
  text += is_measured
              ? " (from a profile)\n"
              : fmt::format(" (no profile: every cost is estimated from the numbers of cluster '{}')\n",
                            plan.cluster.name);
  if (plan.prediction.lower_bound_s > 0) text += gap_text(plan.prediction) + "\n";
  if (plan.prediction.hit_time_limit)
    text += "the search was cut short: another run may find what this one did not\n";
  if (is_measured && plan.prediction.estimated_operators > 0)
    text += count_text(plan.prediction.estimated_operators, "operator cost") +
            " estimated: the profile has no measurement\n";
  if (!plan.prediction.meshes.empty()) text += binding(plan) + "\n";
  for (const StageIndex s : plan.stages.indices()) text += stage_text(placement, s);
  if (!plan.prediction.candidates.empty()) text += "\ncandidates (step time, memory of the fullest device)\n";
  constexpr std::size_t most_shown = 20;
  const std::size_t shown = std::min(most_shown, plan.prediction.candidates.size());
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width, plan.prediction.candidates[i].method.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Candidate& c = plan.prediction.candidates[i];
    text += fmt::format("  {:<{}} {:>10} {:>12}  {}\n", c.method, width,
                        c.step_s > 0 ? seconds_text(c.step_s) : "-", bytes_text(c.memory_bytes), c.verdict);
  }
  if (plan.prediction.candidates.size() > shown)
    text +=
        fmt::format("  and {} more in /candidates of the plan\n", plan.prediction.candidates.size() - shown);
  return text;
}

std::string compare_plans(const Plan& a, const Plan& b) {
  std::string text;
  const auto differ = [&](const std::string& what, const std::string& left, const std::string& right) {
    if (left != right) text += fmt::format("{}: {} | {}\n", what, left, right);
  };
  differ("model", a.model_name, b.model_name);
  differ("graph", a.graph_fingerprint, b.graph_fingerprint);
  differ("profile", a.profile_fingerprint, b.profile_fingerprint);
  differ("cluster", cluster_fingerprint(a.cluster), cluster_fingerprint(b.cluster));
  differ("method", a.method, b.method);
  differ("schedule", a.schedule, b.schedule);
  differ("micro-batches", std::to_string(a.micro_batches), std::to_string(b.micro_batches));
  differ("samples of a micro-batch", std::to_string(a.micro_batch_samples),
         std::to_string(b.micro_batch_samples));
  differ("stages", std::to_string(a.stages.size()), std::to_string(b.stages.size()));
  differ("predicted step time", seconds_text(a.prediction.step_s), seconds_text(b.prediction.step_s));
  for (const StageIndex s : indices_to<StageIndex>(std::min(a.stages.size(), b.stages.size()))) {
    const auto words = [&](const Plan& plan) {
      const StagePlan& stage = plan.stages[s];
      const DeviceMesh& mesh = plan.mesh_of(s);
      return fmt::format("layers {}-{}, mesh {} from device {}{}", stage.first_layer, stage.end_layer - 1,
                         mesh_text(mesh.shape), mesh.first_device, recomputation_text(stage));
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
  if (a.transfers != b.transfers) text += "values cross between meshes in another way\n";
  if (a.model_toml != b.model_toml) text += training_differences(a, b);
  if (text.empty() && !(a.prediction == b.prediction)) text = "details of the prediction differ\n";
  if (text.empty() && !(a == b))
    text = "the model's TOML differs, but neither its graph nor its [training]\n";
  return text;
}

}  // namespace alpa
