#include "libalpa/plan/facts/plan_facts.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "libalpa/base/toml_document.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/cluster_parts.h"
#include "libalpa/graph/lossy_gradients.h"

namespace alpa {
namespace {

/// How the forward of each stage is split: [stage] strategies by name.
std::vector<std::vector<WorkGroup>> forward_work(const Placement& placement) {
  const Graph& graph = placement.graph();
  std::vector<std::map<std::pair<std::string, std::string>, int>> counts(placement.plan().stages.size());
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (node.phase != Phase::forward) continue;
    const std::vector<TensorType> types = operand_types(graph, node);
    const std::string how =
        strategy_text(*node.op, {types, node.attributes}, placement.plan().node_strategy[n]);
    ++counts[static_cast<std::size_t>(placement.stage_of_node(n))][{std::string(node.op->name), how}];
  }
  std::vector<std::vector<WorkGroup>> groups;
  for (const auto& of_stage : counts) {
    groups.emplace_back();
    for (const auto& [work, count] : of_stage) groups.back().push_back({work.first, work.second, count});
  }
  return groups;
}

/// What reaches a mesh.
std::vector<ArrivalGroup> arrivals(const Placement& placement, MeshIndex mesh) {
  const Plan& plan = placement.plan();
  std::vector<ArrivalGroup> groups;
  for (std::size_t t = 0; t < plan.transfers.size(); ++t) {
    const PlannedTransfer& planned = plan.transfers[t];
    if (planned.to_mesh != mesh) continue;
    const Transfer transfer = placement.transfer(planned);
    const ArrivalGroup one{
        {},
        type_text(transfer.whole),
        spec_text(transfer.from),
        spec_text(transfer.to),
        placement.stage_of_value(planned.value),
        transfer_way_text(planned.way),
        t < plan.prediction.transfers.size() ? plan.prediction.transfers[t] : TransferPrediction{}};
    const auto same = [&](const ArrivalGroup& other) {
      return other.type == one.type && other.from == one.from && other.to == one.to &&
             other.from_stage == one.from_stage && other.way == one.way && other.each == one.each;
    };
    auto found = std::ranges::find_if(groups, same);
    if (found == groups.end()) found = groups.insert(found, one);
    found->names.push_back(value_of(placement.graph(), planned.value).name);
  }
  return groups;
}

/// The words for all stages together.
std::string split_text(const PlanFacts& facts, std::size_t meshes) {
  std::vector<std::string> words;
  const auto& stages = facts.stages;
  const std::string of_first = stages.front().split.text();
  if (std::ranges::all_of(stages, [&](const StageFacts& s) { return s.split.text() == of_first; }) &&
      (meshes == 1 || !stages.front().split.axes.empty()))
    words.push_back(of_first);
  if (meshes > 1) words.push_back(fmt::format("PP{}", meshes));
  if (stages.size() > meshes) words.push_back(fmt::format("{} stages on {} meshes", stages.size(), meshes));
  return fmt::format("{}", fmt::join(words, " · "));
}

/// They are numbered from 0.
int bucket_count(const Plan& plan) {
  int count = 0;
  for (const GradientSync& sync : plan.sync) count = std::max(count, sync.bucket + 1);
  return count;
}

/// What the plan's model says of the rounds of its vertices; "" where it is not over graphs.
std::string vertices_text(const std::string& model_toml) {
  if (model_toml.find("[graphs]") == std::string::npos) return "";
  TomlDocument document = TomlDocument::parse(model_toml, "the plan's model");
  const TomlTable graphs = document.root().table("graphs");
  const std::int64_t group = document.root().table("training").integer("group_samples", 1);
  const std::string policy = graphs.string("batching", "frontier");
  const auto rounds = std::ssize(graphs.integers("rounds"));
  return fmt::format("the vertices of {} together, by {}{}", count_text(group, "sample"), policy,
                     rounds > 0 ? fmt::format(", in {}", count_text(rounds, "round")) : "");
}

}  // namespace

const char* PlanFacts::costs() const {
  return !is_measured() ? "estimated" : extrapolated_from.empty() ? "measured" : "extrapolated";
}

const Candidate* PlanFacts::runner_up() const {
  for (const Candidate& c : prediction.candidates)
    if (c.step_s > 0 && !c.is_chosen() && c.schedule.empty()) return &c;
  return nullptr;
}

PlanFacts plan_facts(const Plan& plan, const Graph& graph) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  const std::vector<ShardingRule> rules = node_rules(graph);
  const std::vector<std::vector<FactorRole>> roles = factor_roles(graph, rules);
  const std::vector<std::vector<WorkGroup>> work = forward_work(placement);
  const Indexed<MeshIndex, std::vector<StageIndex>> stages = stages_of_meshes(plan);
  PlanFacts facts{.model = plan.model_name,
                  .method = plan.method,
                  .schedule = plan.schedule,
                  .overlap = overlap_name(plan.overlap),
                  .updates = update_order_name(plan.updates),
                  .buckets = bucket_count(plan),
                  .cluster = plan.cluster,
                  .devices = plan.devices(),
                  .micro_batches = plan.micro_batches,
                  .micro_batch_samples = plan.micro_batch_samples,
                  .profile_fingerprint = plan.profile_fingerprint,
                  .extrapolated_from = plan.extrapolated_from,
                  .mean = mean_time(plan),
                  .prediction = plan.prediction,
                  .lossy = lossy_gradients_text(graph),
                  .stale = staleness_text(plan),
                  .vertices = vertices_text(plan.model_toml)};
  facts.binding = binding_of(plan);
  for (const StageIndex s : plan.stages.indices()) {
    const StagePlan& stage = plan.stages[s];
    StageFacts of_stage{.stage = s,
                        .plan = stage,
                        .first_layer = graph.layers[static_cast<std::size_t>(stage.first_layer)],
                        .last_layer = graph.layers[static_cast<std::size_t>(stage.end_layer) - 1],
                        .mesh = plan.mesh_of(s),
                        .parts = part_names(plan.cluster, plan.mesh_of(s)),
                        .device_memory_bytes = cluster_under(plan.cluster, plan.mesh_of(s)).memory_bytes,
                        .split = stage_parallelism(placement, s, rules, roles),
                        .figures_at = stages[stage.mesh].front(),
                        .tensors = stage_tensors(placement, s),
                        .arrivals = {},
                        .forward_work = work[static_cast<std::size_t>(s)]};
    if (of_stage.figures_at == s) of_stage.arrivals = arrivals(placement, stage.mesh);
    of_stage.has_figures = of_stage.figures_at == s && stage.mesh < std::ssize(plan.prediction.meshes);
    if (of_stage.has_figures) of_stage.figures = plan.prediction.meshes[stage.mesh];
    facts.stages.push_back(std::move(of_stage));
  }
  facts.split = split_text(facts, plan.meshes.size());
  return facts;
}

}  // namespace alpa
