#include "libalpa/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/units.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::input, what,
              "the plan does not belong to this model, or was altered; make it again with alpa-plan");
}

void check_stages(const Plan& plan, const Graph& graph) {
  int layer = 0;
  std::vector<bool> taken(static_cast<std::size_t>(std::max(plan.cluster.devices(), 0)));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stages[s];
    if (stage.first_layer != layer || stage.end_layer <= layer)
      refuse(fmt::format("stage {} starts at layer {}, expected {}", s, stage.first_layer, layer));
    layer = stage.end_layer;
    for (const int extent : stage.mesh.shape)
      if (extent < 2) refuse(fmt::format("stage {} has a mesh axis of {}, expected 2 or more", s, extent));
    if (stage.mesh.shape.size() > 4) refuse(fmt::format("stage {} has more than 4 mesh axes", s));
    const int first = stage.mesh.first_device, end = first + device_count(stage.mesh.shape);
    if (first < 0 || end > plan.cluster.devices())
      refuse(fmt::format("stage {} wants devices {} to {}, the cluster has {}", s, first, end - 1,
                         plan.cluster.devices()));
    for (int device = first; device < end; ++device) {
      if (taken[static_cast<std::size_t>(device)])
        refuse(fmt::format("stage {} shares device {} with another", s, device));
      taken[static_cast<std::size_t>(device)] = true;
    }
  }
  if (layer != static_cast<int>(graph.layers.size()))
    refuse(fmt::format("stages cover {} of {} layers", layer, graph.layers.size()));
}

void check_nodes(const Plan& plan, const Graph& graph) {
  if (plan.node_strategy.size() != graph.nodes.size())
    refuse(fmt::format("plan has strategies for {} nodes, the model has {}", plan.node_strategy.size(),
                       graph.nodes.size()));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const MeshShape& mesh =
        plan.stages[static_cast<std::size_t>(stage_of_layer(plan, node.layer))].mesh.shape;
    const std::vector<TensorType> types = operand_types(graph, node);
    const auto allowed = strategies(*node.op, {types, node.attributes}, mesh);
    if (std::find(allowed.begin(), allowed.end(), plan.node_strategy[n]) == allowed.end())
      refuse(fmt::format("node {} ({}) has a strategy that its rule does not allow", n, node.op->name));
    const NodeLayout layout = layout_of(*node.op, {types, node.attributes}, plan.node_strategy[n], mesh);
    if (node.op->sums_micro_batches &&
        layout.results[0] != plan.value_layout.at(static_cast<std::size_t>(node.results[0])))
      refuse(fmt::format("the sum of node {} does not rest as it is made", n));
  }
}

void check_values(const Plan& plan, const Graph& graph) {
  if (plan.value_layout.size() != graph.values.size())
    refuse(fmt::format("plan has layouts for {} values, the model has {}", plan.value_layout.size(),
                       graph.values.size()));
  for (int v = 0; v < static_cast<int>(graph.values.size()); ++v) {
    const int stage = stage_of_value(plan, graph, v);
    if (stage < 0) continue;
    const ShardingSpec& layout = plan.value_layout[static_cast<std::size_t>(v)];
    const Value& value = value_of(graph, v);
    if (!fits(value.type.shape, layout, plan.stages[static_cast<std::size_t>(stage)].mesh.shape))
      refuse(fmt::format("value {} ({} {}) cannot be laid out as {}", v, value.name, type_text(value.type),
                         spec_text(layout)));
    if (value.kind == ValueKind::state && layout.is_partial())
      refuse(fmt::format("state '{}' is laid out as {}, which is partial", value.name, spec_text(layout)));
  }
}

/// What crosses, and to which stage: each value that a stage uses and another one makes.
std::set<std::pair<int, int>> needed_crossings(const Plan& plan, const Graph& graph) {
  std::set<std::pair<int, int>> needed;
  for (const Node& node : graph.nodes) {
    if (node.op->reduces_globally) continue;
    const int stage = stage_of_layer(plan, node.layer);
    for (const int operand : node.operands) {
      const int from = stage_of_value(plan, graph, operand);
      if (from >= 0 && from != stage && operand != graph.gradient_square_sum) needed.insert({operand, stage});
    }
  }
  return needed;
}

void check_crossings(const Plan& plan, const Graph& graph) {
  const std::set<std::pair<int, int>> needed = needed_crossings(plan, graph);
  std::set<std::pair<int, int>> listed;
  for (const Crossing& crossing : plan.crossings) {
    if (crossing.to_stage < 0 || crossing.to_stage >= static_cast<int>(plan.stages.size()) ||
        crossing.value < 0 || crossing.value >= static_cast<int>(graph.values.size()))
      refuse("a crossing names a stage or value that is not there");
    if (!fits(value_of(graph, crossing.value).type.shape, crossing.layout,
              plan.stages[static_cast<std::size_t>(crossing.to_stage)].mesh.shape) ||
        crossing.layout.is_partial())
      refuse(fmt::format("value {} cannot cross to stage {}", crossing.value, crossing.to_stage));
    if (!needed.contains({crossing.value, crossing.to_stage}) ||
        !listed.insert({crossing.value, crossing.to_stage}).second)
      refuse(fmt::format("value {} crosses to stage {}, which does not need it, or twice", crossing.value,
                         crossing.to_stage));
  }
  for (const auto& [value, stage] : needed)
    if (!listed.contains({value, stage}))
      refuse(fmt::format("value {} is used by stage {} but never sent there", value, stage));
}

}  // namespace

int Plan::devices() const {
  int end = 0;
  for (const StagePlan& stage : stages)
    end = std::max(end, stage.mesh.first_device + device_count(stage.mesh.shape));
  return end;
}

int stage_of_layer(const Plan& plan, int layer) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    if (layer >= plan.stages[s].first_layer && layer < plan.stages[s].end_layer) return static_cast<int>(s);
  assert(false && "no stage has this layer");
  return -1;
}

int stage_of_value(const Plan& plan, const Graph& graph, int value) {
  const Value& v = value_of(graph, value);
  if (v.kind == ValueKind::input) return -1;
  if (v.kind == ValueKind::computed) return stage_of_layer(plan, node_of(graph, v.producer).layer);
  for (const State& state : graph.states) {
    if (state.value != value) continue;
    if (state.next >= 0) return stage_of_value(plan, graph, state.next);
    for (const Node& node : graph.nodes)
      if (std::find(node.operands.begin(), node.operands.end(), value) != node.operands.end())
        return stage_of_layer(plan, node.layer);
  }
  assert(false && "a state that nothing uses");
  return 0;
}

ShardingSpec leaving_layout(const Plan& plan, int value) {
  ShardingSpec layout = plan.value_layout[static_cast<std::size_t>(value)];
  layout.partial_sum = layout.partial_max = 0;
  return layout;
}

std::size_t busiest_stage(const Prediction& prediction) {
  const auto busy = [](const StageTime& t) { return t.compute_s + t.collective_s + t.transfer_s; };
  std::size_t busiest = 0;
  for (std::size_t s = 0; s < prediction.stages.size(); ++s)
    if (busy(prediction.stages[s]) > busy(prediction.stages[busiest])) busiest = s;
  return busiest;
}

std::string why_slower(const Candidate& lost, const Candidate& chosen) {
  const StageTime &a = lost.busiest, &b = chosen.busiest;
  std::pair<double, const char*> most{0, ""};
  for (const auto& [more_s, what] : {std::pair{a.compute_s - b.compute_s, "compute"},
                                     {a.collective_s - b.collective_s, "collectives"},
                                     {a.transfer_s - b.transfer_s, "transfers"},
                                     {a.idle_s - b.idle_s, "idle"}})
    if (more_s > most.first) most = {more_s, what};
  return most.first > 0 ? fmt::format("slower: {} +{}", most.second, seconds_text(most.first)) : "as fast";
}

std::vector<int> saved_values(const Plan& plan, const Graph& graph, int stage) {
  const bool rematerialize = plan.stages[static_cast<std::size_t>(stage)].rematerialize;
  std::vector<bool> in_forward(graph.values.size()), in_backward(graph.values.size());
  for (const Node& node : graph.nodes) {
    if (stage_of_layer(plan, node.layer) != stage) continue;
    for (const int operand : node.operands) {
      const int producer = value_of(graph, operand).producer;
      const int made_in = producer < 0 ? -1 : node_of(graph, producer).layer;
      const std::size_t v = static_cast<std::size_t>(operand);
      if (node.phase == Phase::forward) in_forward[v] = true;
      if (rematerialize ? node.layer != made_in && node.phase != Phase::update
                        : node.phase == Phase::backward)
        in_backward[v] = true;
    }
  }
  std::vector<int> saved;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool of_forward = value.kind == ValueKind::computed
                                ? node_of(graph, value.producer).phase == Phase::forward
                                : value.kind == ValueKind::input && in_forward[v];
    if (of_forward && in_backward[v]) saved.push_back(static_cast<int>(v));
  }
  return saved;
}

void check_plan(const Plan& plan, const Graph& graph) {
  if (graph_fingerprint(graph) != plan.graph_fingerprint)
    refuse(fmt::format("the model's graph is {}, the plan was made for {}",
                       graph_fingerprint(graph).substr(0, 12), plan.graph_fingerprint.substr(0, 12)));
  if (plan.stages.empty() || plan.micro_batches < 1) refuse("plan has no stages or no micro-batches");
  if (plan.micro_batches > kMostMicroBatches)
    refuse(fmt::format("{} micro-batches, expected at most {}", plan.micro_batches, kMostMicroBatches));
  check_stages(plan, graph);
  check_nodes(plan, graph);
  check_values(plan, graph);
  check_crossings(plan, graph);
}

}  // namespace alpa
