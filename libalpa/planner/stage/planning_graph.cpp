#include "libalpa/planner/stage/planning_graph.h"

namespace alpa {

PlanningGraph prepare(const Graph& graph) { return prepare(graph, classify_layers(graph)); }

PlanningGraph prepare(const Graph& graph, LayerClasses classes) {
  std::vector<ShardingRule> rules = node_rules(graph);
  std::vector<std::vector<FactorRole>> roles = factor_roles(graph, rules);
  return {GraphUses(graph), std::move(classes), std::move(rules), std::move(roles)};
}

}  // namespace alpa
