#pragma once
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/model/model.h"
#include "libalpa/plan/plan.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// A model as the planner takes it; it refers to the definition.
PlanningModel planning_model(const ModelDefinition&);

/// make_plan (planner/make_plan.h) of the model as it is or, where its `pad_to` and `pad_heads_to` are open
/// and options.pin does not say how it is split, with vocabularies and heads padded for the devices to split
/// them, whichever is faster. `model` becomes the one that was planned. Throws as make_plan.
Plan plan_with_padding(ModelDefinition& model, const CostModel&, const PlannerOptions&, Log&);

/// "gpt-1.3b: 1315.7 million parameters, 8.73 PFLOP a step (11.64 PFLOP by its paper)"
std::string model_text(const ModelDefinition&, const Graph&);

}  // namespace alpa
