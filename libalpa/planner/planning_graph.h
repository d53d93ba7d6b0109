#pragma once
#include <vector>

#include "libalpa/planner/dimension_roles.h"
#include "libalpa/planner/layer_classes.h"

namespace alpa {

/// What all stage problems of one graph share.
struct PlanningGraph {
  const Graph* graph = nullptr;
  LayerClasses classes;
  std::vector<std::vector<FactorRole>> roles;  ///< of factors
  std::vector<std::vector<int>> consumers;     ///< [value] -> nodes, without the global norm
  std::vector<int> state_at;                   ///< [value] -> the state that starts as it, or -1
  std::vector<int> state_after;                ///< [value] -> the state that becomes it, or -1
  /// [node] -> operands whose squares the global gradient norm takes in the layout in which this node takes
  /// them: of several updates that use a gradient, the last.
  std::vector<std::vector<int>> measured;
};

PlanningGraph prepare(const Graph&);

}  // namespace alpa
