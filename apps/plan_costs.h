#pragma once
#include <filesystem>
#include <string>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// What the work of a plan costs, and what an answer says of it where the plan was made with other costs.
struct PlanCosts {
  CostModel costs;
  std::string remark;
};

/// From a profile; from the numbers of the plan's cluster alone where `profile` is "". Throws Error(input).
PlanCosts costs_of(const Plan&, const std::filesystem::path& profile);

}  // namespace alpa
