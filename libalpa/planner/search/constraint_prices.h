#pragma once
#include <functional>

#include "libalpa/base/deadline.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// Plans by the given options, one after another; none where none fits, or there is no time.
using PlanBy = std::function<std::optional<Plan>(const PlannerOptions&)>;

/// What the constraints that a plan was found under cost: its prediction names them all, each with the step
/// of the plan that is found without it alone, and with that of the one without any. Searches with the same
/// effort; where the plan is as fast as without any, they are free, and no more is searched for. Of what
/// there is no time for, or the options want no price of, the step is 0.
void price_constraints(Plan&, const PlannerOptions&, const Deadline&, const PlanBy&);

/// Why no plan meets the constraints: those that are each to blame, or that are together; "" where there is
/// none without them either. Searches quickly.
std::string constraints_to_blame(const PlannerOptions&, const Deadline&, const PlanBy&);

}  // namespace alpa
