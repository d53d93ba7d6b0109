#include "libalpa/planner/stage/planning_graph.h"

namespace alpa {

PlanningGraph prepare(const Graph& graph, StageLimits limits) {
  PlanningGraph planning = prepare(graph, apart_by_limits(classify_layers(graph), graph, limits));
  planning.limits = std::move(limits);
  return planning;
}

PlanningGraph prepare(const Graph& graph, LayerClasses classes) {
  std::vector<ShardingRule> rules = node_rules(graph);
  std::vector<std::vector<FactorRole>> roles = factor_roles(graph, rules);
  return {GraphUses(graph), std::move(classes), std::move(rules), std::move(roles), {}, Overlap::none};
}

}  // namespace alpa
