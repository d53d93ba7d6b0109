#include "libalpa/planner/stage/layer_classes.h"

#include <fmt/core.h>

#include <numeric>

namespace alpa {
namespace {

std::string layer_text(const Graph& graph, const LayerClasses& classes, int layer) {
  std::map<int, int> outside;  // value -> order of first use
  std::string text;
  for (const NodeIndex n : classes.layer_nodes[layer]) {
    const Node& node = node_of(graph, n);
    if (node.op->reduces_globally) continue;
    Attributes attributes;
    for (const auto& [name, value] : node.attributes.all())
      if (name != "stream") attributes.set(name, value);  // which random numbers, not what is computed
    text += fmt::format("{} {} {}(", static_cast<int>(node.phase), node.op->name, attributes.to_string());
    for (const ValueIndex operand : node.operands) {
      const Value& value = value_of(graph, operand);
      const bool inside = value.producer >= 0 && node_of(graph, value.producer).layer == layer &&
                          !node_of(graph, value.producer).op->reduces_globally;
      if (inside) {
        const Node& producer = node_of(graph, value.producer);
        int result = 0;
        while (producer.results[result] != operand) ++result;
        text += fmt::format(" {}.{}", classes.place_in_layer[value.producer], result);
      } else {
        const auto order = outside.emplace(operand, static_cast<int>(outside.size())).first->second;
        text += fmt::format(" out{} kind {} {}", order, static_cast<int>(value.kind), type_text(value.type));
      }
    }
    text += ")\n";
  }
  return text;
}

}  // namespace

LayerClasses layers_apart(const Graph& graph) {
  LayerClasses classes;
  classes.layer_nodes.resize(graph.layers.size());
  for (const NodeIndex n : graph.nodes.indices()) {
    auto& nodes = classes.layer_nodes[node_of(graph, n).layer];
    classes.place_in_layer.push_back(static_cast<int>(nodes.size()));
    nodes.push_back(n);
  }
  classes.of_layer.resize(graph.layers.size());
  std::iota(classes.of_layer.begin(), classes.of_layer.end(), 0);
  return classes;
}

LayerClasses classify_layers(const Graph& graph) {
  LayerClasses classes = layers_apart(graph);
  std::map<std::string, int> known;
  for (int layer = 0; layer < static_cast<int>(graph.layers.size()); ++layer)
    classes.of_layer[layer] =
        known.emplace(layer_text(graph, classes, layer), static_cast<int>(known.size())).first->second;
  return classes;
}

}  // namespace alpa
