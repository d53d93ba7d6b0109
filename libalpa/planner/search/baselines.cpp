#include "libalpa/planner/search/baselines.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>

#include "libalpa/cluster/cluster_parts.h"
#include "libalpa/graph/dimension_roles.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

bool has_sequence(const Graph& graph) { return std::ranges::any_of(graph.inputs, &Input::is_sequence); }

double most_flops_per_s(const Cluster& cluster) {
  return std::max(
      {cluster.flops_per_s(DType::f32), cluster.flops_per_s(DType::bf16), cluster.flops_per_s(DType::f16)});
}

}  // namespace

bool has_small_factors(const Graph& graph, int micro_batches, int devices) {
  return std::ranges::any_of(graph.nodes, [&](const Node& sum) {
    if (!sum.op->sums_micro_batches) return false;
    const NodeIndex maker = value_of(graph, sum.operands[0]).producer;
    if (maker < 0 || !(node_of(graph, maker).op->is_product || node_of(graph, maker).op->adds_up_rows))
      return false;
    double factors = 0;
    for (const ValueIndex factor : node_of(graph, maker).operands) {
      const Value& value = value_of(graph, factor);
      Shape of_device = value.type.shape;
      of_device[0] = std::max<std::int64_t>(of_device[0] / devices, 1);
      factors +=
          micro_batches * static_cast<double>(byte_count(value.type)) * value.wire.sent_share(of_device);
    }
    return factors < 2 * static_cast<double>(byte_count(value_of(graph, sum.results[0]).type));
  });
}

Baselines::Baselines(const Graph& graph, int devices, const Cluster& cluster, int micro_batches,
                     const PlannerOptions& options)
    : graph_(graph),
      cluster_(cluster),
      devices_(devices),
      micro_batches_(micro_batches),
      mesh_axes_(mesh_axes(options)),
      schedule_(options.schedule),
      shares_meshes_(options.method == "megatron"),
      layer_flops_(graph.layers.size(), 0.0) {
  for (const Node& node : graph.nodes)
    if (node.phase != Phase::update && !node.op->sums_micro_batches)  // sums may be the gradient kernels'
      layer_flops_[node.layer] += flops_of(*node.op, {operand_types(graph, node), node.attributes});
}

/// How fast each of so many stages is beside the first, on as many devices each.
std::vector<double> Baselines::paces(int stages) const {
  std::vector<double> paces;
  const int devices = devices_ / stages;
  for (int s = 0; s < stages; ++s)
    paces.push_back(most_flops_per_s(cluster_under(cluster_, {DeviceIndex(s * devices), {devices}})));
  for (double& pace : std::views::reverse(paces)) pace /= paces.front();
  return paces;
}

/// Ends of `stages` runs of layers whose FLOPs take about equally long.
std::vector<int> Baselines::equal_time_ends(int stages) const {
  const std::vector<double> pace = paces(stages);
  const double all_paces = std::accumulate(pace.begin(), pace.end(), 0.0);
  double paces_so_far = pace.front();
  const int layers = static_cast<int>(layer_flops_.size());
  const std::vector<double>& work = layer_flops_;
  const double total = std::accumulate(work.begin(), work.end(), 0.0);
  std::vector<int> ends;
  double sum = 0;
  for (int layer = 0, stage = 1; layer < layers; ++layer) {
    sum += work[layer];
    const int left = layers - layer - 1;
    const bool share_reached =
        sum + 0.5 * (layer + 1 < layers ? work[static_cast<std::size_t>(layer) + 1] : 0) >=
        total * paces_so_far / all_paces;
    if (stage < stages && (share_reached || left == stages - stage)) {
      ends.push_back(layer + 1);
      paces_so_far += pace[stage++];
    }
  }
  ends.push_back(layers);
  return ends;
}

PinnedPlan Baselines::pipeline(const std::string& method, const std::vector<int>& ends, const MeshShape& mesh,
                               const std::vector<AxisRole>& roles, StateSharding state_sharding) const {
  PinnedPlan plan{method, micro_batches_, schedule_, 1, {}};
  int first = 0;
  for (const int end : ends) {
    plan.stages.push_back({.first_layer = first,
                           .end_layer = end,
                           .mesh = mesh,
                           .micro_batches = micro_batches_,
                           .roles = roles,
                           .state_sharding = state_sharding});
    first = end;
  }
  return plan;
}

std::vector<PinnedPlan> Baselines::megatron() const {
  std::vector<PinnedPlan> plans;
  for (int pipe = 1; pipe <= devices_ && pipe <= static_cast<int>(graph_.layers.size()); ++pipe) {
    if (devices_ % pipe != 0) continue;
    for (int tensor = 1; tensor * pipe <= devices_; ++tensor) {
      const int data = devices_ / pipe / tensor;
      if (data * tensor * pipe != devices_ || tensor > cluster_.devices_per_node ||
          graph_.samples % data != 0)
        continue;
      MeshShape mesh;
      std::vector<AxisRole> roles;
      if (data > 1) {
        mesh.push_back(data);
        roles.push_back(AxisRole::data);
      }
      if (tensor > 1) {
        mesh.push_back(tensor);
        roles.push_back(AxisRole::tensor);
      }
      const std::string name = fmt::format("megatron dp{} tp{} pp{}", data, tensor, pipe);
      if (pipe == 1 || may_have(schedule_, 1))
        plans.push_back(pipeline(name, equal_time_ends(pipe), mesh, roles, StateSharding::none));
      // Several stages on each mesh (SC'21), which the search looks for too.
      for (int per_mesh = 2; pipe > 1 && per_mesh * pipe <= std::ssize(graph_.layers); per_mesh *= 2)
        for (const std::string& schedule : schedule_names(per_mesh)) {
          if (!shares_meshes_ || !cluster_.parts.empty() ||
              (schedule_ != kAnySchedule && schedule_ != schedule))
            continue;
          plans.push_back(pipeline(fmt::format("{} x{}", name, per_mesh), equal_time_ends(per_mesh * pipe),
                                   mesh, roles, StateSharding::none));
          plans.back().schedule = schedule;
          plans.back().stages_per_mesh = per_mesh;
        }
    }
  }
  return plans;
}

/// Data parallel with ZeRO-2, experts on as many devices as divide their number (DeepSpeed-MoE, ICML'22).
std::vector<PinnedPlan> Baselines::deepspeed_moe() const {
  const std::vector<ShardingRule> rules = node_rules(graph_);
  const std::vector<std::vector<FactorRole>> roles = factor_roles(graph_, rules);
  std::int64_t shared = 0;  // devices of a group that shares experts
  for (const NodeIndex n : graph_.nodes.indices())
    for (std::size_t f = 0; f < roles[n].size(); ++f)
      if (roles[n][f] == FactorRole::expert)
        shared = std::gcd(shared, std::gcd(rules[n].factors[f].size, std::int64_t{devices_}));
  if (shared == 0 || graph_.samples % devices_ != 0) return {};
  MeshShape mesh;
  std::vector<AxisRole> axes;
  if (const int groups = devices_ / static_cast<int>(shared); groups > 1) {
    mesh.push_back(groups);
    axes.push_back(AxisRole::data);
  }
  if (shared > 1) {
    mesh.push_back(static_cast<int>(shared));
    axes.push_back(AxisRole::expert);
  }
  return {pipeline("deepspeed-moe", equal_time_ends(1), mesh, axes, StateSharding::gradients)};
}

/// Each mesh that the devices may be divided into, used as is best (the ablation of OSDI'22, section 8.3).
std::vector<PinnedPlan> Baselines::equal_layer() const {
  std::vector<PinnedPlan> plans;
  const int layers = static_cast<int>(graph_.layers.size());
  for (int stages = 1; stages <= std::min(devices_, layers); ++stages) {
    if (devices_ % stages != 0) continue;
    std::vector<int> ends;
    for (int stage = 1; stage <= stages; ++stage) ends.push_back(layers * stage / stages);
    if (stages > 1 && !may_have(schedule_, 1)) continue;
    for (const MeshShape& mesh : mesh_shapes(devices_ / stages, cluster_.devices_per_node, mesh_axes_))
      plans.push_back(pipeline(fmt::format("equal-layer {} x {}", stages, mesh_text(mesh)), ends, mesh, {},
                               StateSharding::free));
  }
  return plans;
}

std::vector<std::string> baseline_names() {
  std::vector<std::string> names;
  for (const PlannerMethod& method : planner_methods())
    if (method.is_baseline) names.push_back(method.name);
  return names;
}

bool is_wanted(const PlannerOptions& options, const std::string& name) {
  const auto method = std::ranges::find(planner_methods(), name, &PlannerMethod::name);
  return options.method == name || (options.method == "auto" && method->is_in_auto);
}

double Baselines::least_s(const PinnedPlan& pinned, const Cluster& cluster) const {
  const double flops_per_s = most_flops_per_s(cluster);
  std::vector<StageFloor> stages;
  for (const StageRequest& stage : pinned.stages) {
    const double flops = std::accumulate(layer_flops_.begin() + stage.first_layer,
                                         layer_flops_.begin() + stage.end_layer, 0.0);
    const double micro_batch_s = flops / flops_per_s / device_count(stage.mesh);
    stages.push_back({.micro_batch_s = micro_batch_s, .step_s = pinned.micro_batches * micro_batch_s});
  }
  return least_pipeline_s(stages, pinned.schedule, pinned.stages_per_mesh, pinned.micro_batches);
}

std::vector<PinnedPlan> Baselines::of(const std::string& method) const {
  const MeshShape all = devices_ > 1 ? MeshShape{devices_} : MeshShape{};
  const auto one_stage = [&](AxisRole role, StateSharding state_sharding) {
    return std::vector<PinnedPlan>{
        pipeline(method, equal_time_ends(1), all, std::vector<AxisRole>(all.size(), role), state_sharding)};
  };
  static const std::map<std::string, StateSharding> kinds_of_data_parallel{
      {"data-parallel", StateSharding::none},
      {"zero-1", StateSharding::optimizer},
      {"zero-2", StateSharding::gradients},
      {"zero-3", StateSharding::parameters}};
  if (method == "serial") return {pipeline(method, equal_time_ends(1), {}, {}, StateSharding::free)};
  if (const auto found = kinds_of_data_parallel.find(method); found != kinds_of_data_parallel.end())
    return graph_.samples % devices_ == 0 ? one_stage(AxisRole::data, found->second)
                                          : std::vector<PinnedPlan>{};
  if (method == kFactorsMethod || method == kRowsMethod)
    return graph_.samples % devices_ == 0
               ? one_stage(method == kRowsMethod ? AxisRole::rows : AxisRole::factors, StateSharding::none)
               : std::vector<PinnedPlan>{};
  if (method == "sequence" || method == "ring")
    return has_sequence(graph_)
               ? one_stage(method == "ring" ? AxisRole::ring : AxisRole::sequence, StateSharding::none)
               : std::vector<PinnedPlan>{};
  if (method == "tensor") return one_stage(AxisRole::tensor, StateSharding::none);
  if (method == "megatron") return megatron();
  if (method == "deepspeed-moe") return deepspeed_moe();
  if (method == "equal-layer") return equal_layer();
  return {};
}

}  // namespace alpa
