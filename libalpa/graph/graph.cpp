#include "libalpa/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"

namespace alpa {

const Value& value_of(const Graph& graph, ValueIndex value) {
  assert(value >= 0 && value < static_cast<int>(graph.values.size()));
  return graph.values[value];
}

const Node& node_of(const Graph& graph, NodeIndex node) { return graph.nodes[node]; }

Indexed<NodeIndex, bool> leads_to_weights_alone(const Graph& graph) {
  Indexed<NodeIndex, bool> alone(graph.nodes.size());
  Indexed<ValueIndex, bool> wanted(graph.values.size());  // for the gradient of a computed value
  for (const NodeIndex n : graph.nodes.reversed_indices()) {
    const Node& node = graph.nodes[n];
    if (node.phase != Phase::backward) continue;
    alone[n] = std::ranges::none_of(node.results, [&](ValueIndex result) {
      return value_of(graph, result).is_gradient_of_computed || wanted[result];
    });
    if (!alone[n])
      for (const ValueIndex operand : node.operands) wanted[operand] = true;
  }
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (node.phase != Phase::backward || !node.op->sums_micro_batches) continue;
    const NodeIndex maker = value_of(graph, node.operands[0]).producer;
    if (maker >= 0 && node_of(graph, maker).phase == Phase::backward) alone[n] = alone[maker];
  }
  return alone;
}

TensorType unpadded_type(const Graph& graph, const State& state) {
  TensorType type = value_of(graph, state.value).type;
  if (!state.unpadded.empty()) type.shape = state.unpadded;
  return type;
}

std::vector<TensorType> operand_types(const Graph& graph, const Node& node) {
  std::vector<TensorType> types;
  for (const ValueIndex operand : node.operands) types.push_back(value_of(graph, operand).type);
  return types;
}

namespace {

std::string sent_type_text(const Value& value) {
  const std::string own = type_text(value.type);
  if (value.wire.vocabulary > 0)
    return fmt::format("{} sent as rows of {} ids ({})", own, value.wire.vocabulary,
                       value.wire.distinct_share);
  return value.wire.sum_type ? fmt::format("{} sent as {}", own, dtype_name(*value.wire.sum_type)) : own;
}

}  // namespace

std::string graph_text(const Graph& graph) {
  constexpr const char* phases[] = {"forward", "backward", "update"};
  std::string text = fmt::format("samples {}\n", graph.samples);
  for (const Input& input : graph.inputs)
    text += fmt::format("input %{} kind {} {}\n", input.value, static_cast<int>(input.kind),
                        type_text(value_of(graph, input.value).type));
  for (const State& state : graph.states)
    text +=
        fmt::format("state %{} '{}' {} init {} {} next %{} {}{}{}\n", state.value, state.name,
                    type_text(value_of(graph, state.value).type), static_cast<int>(state.initializer.kind),
                    state.initializer.scale, state.next, state.follows,
                    state.unpadded.empty() ? "" : fmt::format(" unpadded {}", fmt::join(state.unpadded, "x")),
                    state.holds_terms ? " in terms" : "");
  for (const Node& node : graph.nodes) {
    std::string results, operands;
    for (const ValueIndex v : node.results)
      results += fmt::format("%{} {} ", v, sent_type_text(value_of(graph, v)));
    for (const ValueIndex v : node.operands) operands += fmt::format(" %{}", v);
    text += fmt::format("{}= {} {}{} ({}, layer {})\n", results, node.op->name, node.attributes.to_string(),
                        operands, phases[static_cast<int>(node.phase)], node.layer);
  }
  for (const Metric& metric : graph.metrics)
    text += fmt::format("metric '{}' {} %{}\n", metric.name, metric.per_target ? "per target" : "per step",
                        fmt::join(metric.values, " %"));
  return text + fmt::format("loss %{}\n", graph.loss);
}

std::string graph_fingerprint(const Graph& graph) { return fingerprint(graph_text(graph)); }

double gradient_clip(const Graph& graph) {
  double clip = 0;
  for (const Node& node : graph.nodes)
    if (node.phase == Phase::update) clip = std::max(clip, node.attributes.number("clip", 0));
  return clip;
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const State& state : graph.states)
    if (state.is_parameter) count += element_count(unpadded_type(graph, state).shape);
  return count;
}

double graph_flops(const Graph& graph, Phase phase) {
  double flops = 0;
  for (const Node& node : graph.nodes)
    if (node.phase == phase)
      flops +=
          (1 - node.op->recomputed_share) * flops_of(*node.op, {operand_types(graph, node), node.attributes});
  return flops;
}

double step_flops(const Graph& graph, int micro_batches) {
  return micro_batches * (graph_flops(graph, Phase::forward) + graph_flops(graph, Phase::backward)) +
         graph_flops(graph, Phase::update);
}

namespace {

/// Whatever is summed over the tensors of a graph fits into 64 bits then.
void check_size(const TensorType& type, std::string_view name) {
  if (!checked_element_count(type.shape))
    throw Error(ErrorKind::input,
                fmt::format("{} '{}' has more than {} elements", type_text(type), name, kMostElements));
}

}  // namespace

void GraphBuilder::begin_layer(const std::string& name) {
  graph_.layers.push_back(name);
  layer_ = static_cast<int>(graph_.layers.size()) - 1;
}

void GraphBuilder::set_place(Phase phase, int layer) {
  phase_ = phase;
  layer_ = layer;
}

const TensorType& GraphBuilder::type(ValueIndex value) const { return value_of(graph_, value).type; }

ValueIndex GraphBuilder::input(InputKind kind, TensorType type, const std::string& name, std::int64_t below) {
  check_size(type, name);
  const ValueIndex value = graph_.values.push_back({std::move(type), ValueKind::input, {}, name});
  graph_.inputs.push_back({kind, value, below});
  return value;
}

ValueIndex GraphBuilder::state(const std::string& name, TensorType type, Initializer initializer,
                               bool is_parameter, const std::string& follows) {
  for (const State& state : graph_.states)
    if (state.name == name) throw Error(ErrorKind::input, fmt::format("two states are named '{}'", name));
  check_size(type, name);
  const ValueIndex value = graph_.values.push_back({std::move(type), ValueKind::state, {}, name});
  graph_.states.push_back({name, value, {}, initializer, is_parameter, follows});
  return value;
}

std::vector<ValueIndex> GraphBuilder::add_all(std::string_view op, std::vector<ValueIndex> operands,
                                              Attributes attributes, const std::string& name) {
  Node node{&catalog_.find(op), std::move(attributes), std::move(operands), {}, phase_, layer_, name};
  const std::vector<TensorType> operand_list = operand_types(graph_, node);
  const std::vector<TensorType> types = result_types(*node.op, {operand_list, node.attributes});
  for (const TensorType& type : types) {
    check_size(type, name.empty() ? op : name);
    node.results.push_back(graph_.values.push_back(
        {type, ValueKind::computed, NodeIndex(graph_.nodes.size()), name.empty() ? std::string(op) : name}));
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().results;
}

ValueIndex GraphBuilder::add(std::string_view op, std::vector<ValueIndex> operands, Attributes attributes,
                             const std::string& name) {
  return add_all(op, std::move(operands), std::move(attributes), name)[0];
}

}  // namespace alpa
