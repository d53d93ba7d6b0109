#pragma once
#include <optional>
#include <string>
#include <vector>

#include "libalpa/planner/tuning/plan_choices.h"

namespace alpa {

/// Parameters of equal layers of a stage whose gradients go the same way, and the way that would be next.
struct RunnerUp {
  /// "block.*.mlp.up", as a pattern of constraints, which may match those of other groups too.
  std::string parameters;
  int count = 0;
  MeshIndex mesh;
  std::int64_t bytes = 0;  ///< of their gradients, each whole
  SyncWay way = SyncWay::as_planned;
  bool has_other = false;
  std::optional<SyncWay> next = {};  ///< the fastest of the others, all of them changed together; none fits
  double next_step_s = 0;            ///< a step with that, with buckets and turns as they are or made anew
};

struct RunnersUp {
  double step_s = 0;  ///< of the plan, under the same costs
  std::vector<RunnerUp> groups;
};

/// Of every way in which the gradients of a plan are synchronised that could be another, by the simulator.
/// The answer does not depend on the number of threads.
RunnersUp runners_up(const Plan&, const Graph&, const CostModel&, int threads);

/// A table, the closest first; `remark`: of the costs.
std::string runners_up_text(const RunnersUp&, const std::string& remark);

}  // namespace alpa
