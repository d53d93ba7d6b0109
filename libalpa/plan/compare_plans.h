#pragma once
#include <string>

#include "libalpa/plan/plan.h"

namespace alpa {

/// How two plans differ, one line per difference; "" when they are the same in all but provenance.
std::string compare_plans(const Plan&, const Plan&);

}  // namespace alpa
