#pragma once
#include <string>

#include "libalpa/plan/plan.h"

namespace alpa {

/// A plan in words: stages with their layers, mesh and layouts of parameters; where time and memory go and
/// what binds; the runners-up; how far from the bound.
std::string explain(const Plan&, const Graph&);

/// How far the plan can be from the best one.
std::string gap_text(const Prediction&);

/// How two plans differ, one line per difference; "" when they are the same in all but provenance.
std::string compare_plans(const Plan&, const Plan&);

}  // namespace alpa
