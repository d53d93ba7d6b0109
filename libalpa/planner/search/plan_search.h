#pragma once
#include "libalpa/base/error.h"
#include "libalpa/base/log.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// No plan was found before the time was up: there may be one.
struct OutOfTime : Error {
  using Error::Error;
};

/// make_plan for options that were checked; where no plan fits, nothing is tried to say what would.
Plan search_plan(const PlanningModel&, const CostModel&, const PlannerOptions&, Log&);

}  // namespace alpa
