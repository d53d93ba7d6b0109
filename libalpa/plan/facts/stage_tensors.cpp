#include "libalpa/plan/facts/stage_tensors.h"

#include <fmt/core.h>

#include <map>
#include <set>
#include <tuple>

#include "libalpa/plan/facts/synchronisation.h"
#include "libalpa/plan/facts/training_state.h"
#include "libalpa/plan/owned_updates.h"
#include "libalpa/plan/reduced_gradients.h"

namespace alpa {
namespace {

/// "block.3.mlp.up" as "block.*.mlp.up"
std::string in_any_layer(std::string name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool starts = at == 0 || name[at - 1] == '.';
    std::size_t end = at;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    if (starts && end > at && (end == name.size() || name[end] == '.')) name.replace(at, end - at, "*");
  }
  return name;
}

/// "split 2 ways along dimension 1 (axis 0)", "whole on every device"
std::string layout_words(const ShardingSpec& layout, const MeshShape& mesh) {
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  for (std::size_t d = 0; d < layout.axes.size(); ++d) {
    if (layout.axes[d].empty()) continue;
    int ways = 1;
    std::string axes;
    for (const int axis : layout.axes[d]) {
      ways *= mesh[axis];
      axes += fmt::format("{}{}", axes.empty() ? "" : ",", axis);
    }
    add(fmt::format("split {} ways along dimension {} (axis {})", ways, d, axes));
  }
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if ((layout.partial_sum | layout.partial_max) >> axis & 1)
      add(fmt::format("{} still to be reduced over {} devices (axis {})",
                      layout.partial_sum >> axis & 1 ? "a sum" : "a maximum", mesh[axis], axis));
  return text.empty() ? "whole on every device" : text;
}

/// Counts tensors and their names by the words for their layout.
class LayoutGroups {
 public:
  void add(const std::string& layout, const std::string& name) {
    auto& [count, names] = groups_[layout];
    ++count;
    names.insert(in_any_layer(name));
  }

  std::vector<LayoutGroup> groups() const {
    std::vector<LayoutGroup> all;
    for (const auto& [layout, group] : groups_)
      all.push_back({layout, group.first, {group.second.begin(), group.second.end()}});
    return all;
  }

 private:
  std::map<std::string, std::pair<int, std::set<std::string>>> groups_;
};

}  // namespace

StageTensors stage_tensors(const Placement& placement, StageIndex stage) {
  const Graph& graph = placement.graph();
  const MeshShape& mesh = placement.plan().mesh_of(stage).shape;
  const auto layout = [&](ValueIndex v) -> const ShardingSpec& { return placement.plan().value_layout[v]; };
  const auto here = [&](ValueIndex v) { return placement.stage_of_value(v) == stage; };
  const auto words = [&](ValueIndex v) { return layout_words(layout(v), mesh); };

  std::map<std::tuple<std::string, std::string, std::string>, ParameterGroup> parameters;
  for (const State& state : graph.states) {
    if (!state.is_parameter || !here(state.value)) continue;
    const ParameterGroup group{in_any_layer(state.name), type_text(value_of(graph, state.value).type),
                               spec_text(layout(state.value)), words(state.value)};
    ++parameters.try_emplace({group.name, group.type, group.spec}, group).first->second.count;
  }
  const MeshIndex on = placement.mesh_of_stage(stage);
  const Conversions conversions(placement.plan().cluster, placement.plan().meshes[on]);
  LayoutGroups optimizer, gradients, synchronisation, activations;
  const std::set<ValueIndex> at_owners = states_at_owners(placement.plan(), placement.uses());
  for_each_training_state(placement, stage, [&](const State& parameter, ValueIndex v, bool is_state) {
    if (at_owners.contains(v))
      return optimizer.add(
          placement.plan().has_states_at_servers() ? "each row at its server" : "each row at its owner",
          graph.states[placement.uses().state_at[v]].name);
    if (layout(v) == layout(parameter.value)) return;
    if (is_state)
      optimizer.add(words(v), graph.states[placement.uses().state_at[v]].name);
    else
      gradients.add(words(v), parameter.name);
  });
  for (const ValueIndex sum : sums_of_gradients(graph))
    if (here(sum))
      synchronisation.add(synchronisation_text(placement, on, conversions, sum), value_of(graph, sum).name);
  for (const ValueIndex v : placement.semantics(stage).saved_values())
    if (here(v) && layout(v) != replicated_spec(layout(v).axes.size()))
      activations.add(words(v), value_of(graph, v).name);

  StageTensors tensors{
      {}, optimizer.groups(), gradients.groups(), synchronisation.groups(), activations.groups()};
  for (const auto& [key, group] : parameters) tensors.parameters.push_back(group);
  return tensors;
}

}  // namespace alpa
