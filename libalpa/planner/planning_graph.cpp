#include "libalpa/planner/planning_graph.h"

namespace alpa {

PlanningGraph prepare(const Graph& graph) {
  return {GraphUses(graph), classify_layers(graph), factor_roles(graph)};
}

}  // namespace alpa
