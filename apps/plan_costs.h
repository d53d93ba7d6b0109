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
  std::string warning = {};  ///< of a profile from a busy machine; ""
};

/// "'profile.h5': the machines were busy ..."; "" where they were not.
std::string warning_of(const std::filesystem::path& file, const Profile&);

/// From a profile; from the numbers of the plan's cluster alone where `profile` is "". Throws Error(input).
PlanCosts costs_of(const Plan&, const std::filesystem::path& profile);

}  // namespace alpa
