#include "libalpa/planner/stage/stage_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace alpa {
namespace {

/// What is asked of the tensors that the nodes of a layer take and make, by their place.
std::string limits_text(const LayerClasses& classes, const Graph& graph, const StageLimits& limits,
                        int layer) {
  std::string text;
  for (const NodeIndex n : classes.layer_nodes[layer]) {
    const Node& node = node_of(graph, n);
    int place = 0;
    const auto add = [&](const std::string& asked) {
      text += fmt::format("{}.{} {};", classes.place_in_layer[n], place, asked);
    };
    for (const auto* values : {&node.operands, &node.results})
      for (const ValueIndex v : *values) {
        for (const TensorForm& form : limits.forms_of(v)) add(std::to_string(form.dimension));
        if (const auto way = limits.ways.find(v); way != limits.ways.end()) add(sync_way_name(way->second));
        ++place;
      }
  }
  return text;
}

}  // namespace

bool TensorForm::allows(const ShardingSpec& spec) const {
  for (std::size_t d = 0; d < spec.axes.size(); ++d)
    if (spec.axes[d].empty() == (static_cast<int>(d) == dimension)) return false;
  return true;
}

const std::vector<TensorForm>& StageLimits::forms_of(ValueIndex value) const {
  static const std::vector<TensorForm> none;
  const auto at = tensors.find(value);
  return at == tensors.end() ? none : at->second;
}

const TensorForm* StageLimits::against(ValueIndex value, const ShardingSpec& spec) const {
  for (const TensorForm& form : forms_of(value))
    if (!form.allows(spec)) return &form;
  return nullptr;
}

LayerClasses apart_by_limits(LayerClasses classes, const Graph& graph, const StageLimits& limits) {
  if (limits.tensors.empty() && limits.ways.empty()) return classes;
  std::map<std::pair<int, std::string>, int> known;
  std::vector<int> of_layer;
  for (int layer = 0; layer < static_cast<int>(classes.of_layer.size()); ++layer)
    of_layer.push_back(
        known
            .emplace(std::pair(classes.of_layer[layer], limits_text(classes, graph, limits, layer)),
                     static_cast<int>(known.size()))
            .first->second);
  classes.of_layer = std::move(of_layer);
  return classes;
}

std::map<std::string, ValueIndex> named_tensors(const Graph& graph) {
  std::map<std::string, ValueIndex> tensors;
  for (const Node& node : graph.nodes)
    if (node.phase == Phase::forward && !node.name.empty()) tensors[node.name] = node.results.front();
  for (const State& state : graph.states)
    if (state.is_parameter) tensors[state.name] = state.value;
  return tensors;
}

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1, n = ++resume;  // the last star takes one more
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

UpdateSources update_sources(const GraphUses& uses, const State& parameter) {
  const Graph& graph = uses.graph;
  UpdateSources sources;
  std::set<ValueIndex> seen;
  std::vector<ValueIndex> open;
  if (parameter.next >= 0) open.push_back(parameter.next);
  while (!open.empty()) {
    const ValueIndex v = open.back();
    open.pop_back();
    if (!seen.insert(v).second) continue;
    if (const StateIndex s = uses.state_at[v]; s >= 0) {
      if (!graph.states[s].is_parameter) sources.states.push_back(s);
      if (graph.states[s].holds_terms) open.push_back(graph.states[s].next);  // of gradients of this step
      continue;
    }
    const NodeIndex maker = value_of(graph, v).producer;
    if (maker < 0) continue;
    const Node& node = node_of(graph, maker);
    if (node.op->sums_micro_batches)
      sources.sums.push_back(maker);
    else if (node.phase == Phase::update && !node.op->reduces_globally)
      open.insert(open.end(), node.operands.begin(), node.operands.end());
  }
  std::ranges::sort(sources.sums);
  std::ranges::sort(sources.states);
  return sources;
}

bool is_split_within(const ShardingSpec& spec, const ShardingSpec& other) {
  return (splitting_axes(spec) & ~splitting_axes(other)) == 0;
}

}  // namespace alpa
