#pragma once
#include <string>

#include "libalpa/plan/facts/plan_facts.h"

namespace alpa {

/// Its first line: the model, where it runs, how it is split, and what found it.
std::string plan_heading(const PlanFacts&);

/// A plan on one screen, in the field's words, less than 25 lines whatever it is: how stages are split, where
/// time and memory go, what binds, how sure that is, what lost, what to try. `plan_file` is named in
/// commands.
std::string plan_summary(const PlanFacts&, const std::string& plan_file);

/// A line for each constraint that the plan was found under, and what it costs; "" where there are none.
std::string constraint_table(const PlanFacts&);

/// All of it: the same, then each stage with its layouts, time and memory, and all candidates.
std::string plan_details(const PlanFacts&);

/// How far the plan can be from the best one.
std::string gap_text(const Prediction&);

}  // namespace alpa
