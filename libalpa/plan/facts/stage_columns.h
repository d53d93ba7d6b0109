#pragma once
#include <span>
#include <string>

#include "libalpa/base/columns.h"
#include "libalpa/plan/facts/plan_facts.h"

namespace alpa {

/// What is said of a stage in one number or word, then the columns of its mesh; these are empty where they
/// stand at another stage ("figures_at_stage").
std::span<const Column<StageFacts>> stage_columns();

/// A line for each stage.
std::string stages_csv(const PlanFacts&);

}  // namespace alpa
