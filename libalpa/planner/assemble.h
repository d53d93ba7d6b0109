#pragma once
#include <vector>

#include "libalpa/plan/plan.h"
#include "libalpa/planner/stage/stage_problem.h"

namespace alpa {

/// One plan out of solved stages, which were placed: those with the same first device share a mesh.
/// `requests` and `solutions` are in the order of the stages. model_name, model_toml and method are left to
/// the caller.
Plan assemble(const PlanningGraph&, const std::vector<StageRequest>& requests,
              const std::vector<StageSolution>& solutions, const std::string& schedule, const Cluster&);

}  // namespace alpa
