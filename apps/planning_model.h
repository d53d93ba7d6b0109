#pragma once
#include "libalpa/model/model.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// A model as the planner takes it; it refers to the definition.
PlanningModel planning_model(const ModelDefinition&);

}  // namespace alpa
