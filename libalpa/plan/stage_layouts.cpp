#include "libalpa/plan/stage_layouts.h"

#include <fmt/core.h>

#include <map>
#include <set>

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

class StageLayouts {
 public:
  StageLayouts(const Placement& placement, StageIndex stage)
      : placement_(placement), plan_(placement.plan()), graph_(placement.graph()), stage_(stage) {}

  std::string text() const {
    std::map<std::string, int> parameters;
    for (const State& state : graph_.states)
      if (state.is_parameter && here(state.value)) ++parameters[parameter_line(state)];
    std::string text = "  parameters (S<axes>: split, R: whole)\n";
    for (const auto& [line, count] : parameters) text += fmt::format("    {:>3} x {}\n", count, line);

    Groups optimizer, gradients, activations;
    for (const Node& node : graph_.nodes)
      if (const State* parameter = updated_parameter(node))
        add_training_state(node, *parameter, optimizer, gradients);
    for (const ValueIndex v : placement_.semantics(stage_).saved_values())
      if (here(v) && layout(v) != replicated_spec(layout(v).axes.size()))
        add(activations, value_of(graph_, v).name, v);
    return text + section("optimizer state that lies otherwise than its parameter", optimizer) +
           section("sums of gradients that lie otherwise than their parameter", gradients) +
           section("activations, saved for the backward, that are split", activations);
  }

 private:
  struct Group {
    int count = 0;
    std::set<std::string> names;
  };
  using Groups = std::map<std::string, Group>;  ///< by the words for their layout

  const ShardingSpec& layout(ValueIndex value) const { return plan_.value_layout[value]; }
  bool here(ValueIndex value) const { return placement_.stage_of_value(value) == stage_; }
  std::string words(ValueIndex value) const {
    return layout_words(layout(value), plan_.mesh_of(stage_).shape);
  }

  std::string parameter_line(const State& state) const {
    return fmt::format("{:<36} {:<18} {:<6} {}", in_any_layer(state.name),
                       type_text(value_of(graph_, state.value).type), spec_text(layout(state.value)),
                       words(state.value));
  }

  void add(Groups& groups, const std::string& name, ValueIndex value) const {
    Group& group = groups[words(value)];
    ++group.count;
    group.names.insert(in_any_layer(name));
  }

  static std::string section(const char* title, const Groups& groups) {
    if (groups.empty()) return "";
    std::string text = fmt::format("  {}\n", title);
    for (const auto& [words, group] : groups) {
      text += fmt::format("    {:>3} x {}:", group.count, words);
      constexpr std::size_t shown = 4;
      std::size_t n = 0;
      for (auto name = group.names.begin(); name != group.names.end() && n < shown; ++name, ++n)
        text += fmt::format("{} {}", n > 0 ? "," : "", *name);
      text += group.names.size() > shown ? fmt::format(" and {} more\n", group.names.size() - shown) : "\n";
    }
    return text;
  }

  const State* state_of(ValueIndex value) const {
    for (const State& state : graph_.states)
      if (state.value == value) return &state;
    return nullptr;
  }

  /// The parameter that a node of the update on this stage makes anew; null: none.
  const State* updated_parameter(const Node& node) const {
    if (node.phase != Phase::update || stage_of_layer(plan_, node.layer) != stage_) return nullptr;
    for (const ValueIndex operand : node.operands)
      if (const State* state = state_of(operand); state && state->is_parameter) return state;
    return nullptr;
  }

  void add_training_state(const Node& node, const State& parameter, Groups& optimizer,
                          Groups& gradients) const {
    for (const ValueIndex operand : node.operands) {
      const Value& value = value_of(graph_, operand);
      const bool alike = value.type.shape == value_of(graph_, parameter.value).type.shape;
      if (!alike || layout(operand) == layout(parameter.value)) continue;
      if (value.kind == ValueKind::state)
        add(optimizer, state_of(operand)->name, operand);
      else if (value.kind == ValueKind::computed)
        add(gradients, parameter.name, operand);
    }
  }

  const Placement& placement_;
  const Plan& plan_;
  const Graph& graph_;
  StageIndex stage_;
};

}  // namespace

std::string stage_layouts(const Placement& placement, StageIndex stage) {
  return StageLayouts(placement, stage).text();
}

}  // namespace alpa
