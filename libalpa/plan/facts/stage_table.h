#pragma once
#include <string>

#include "libalpa/plan/facts/plan_facts.h"

namespace alpa {

/// Stages as lines of a table, neighbours that say the same in one: at most 12 lines, the first of which are
/// titles; what does not fit is counted in the last.
std::string stage_table(const PlanFacts&);

}  // namespace alpa
