#pragma once
#include <map>
#include <string>

#include "libalpa/planner/mesh_prices.h"
#include "libalpa/planner/planning_graph.h"
#include "libalpa/planner/stage_request.h"
#include "libalpa/solver/strategy_selection.h"

namespace alpa {

/// One stage's strategies, what they cost, and what memory they take, as the selection problem sees it. Exact
/// figures come from lowering.
struct StageSolution {
  bool feasible = false;
  std::string why_not;            ///< where it is not
  std::int64_t least_memory = 0;  ///< where memory is why: what it would need at least
  std::map<int, Strategy> node_strategy;
  std::map<int, ShardingSpec> value_layout;
  std::map<int, ShardingSpec> arriving;  ///< values made elsewhere -> layout they arrive in
  double micro_batch_s = 0;              ///< forward and backward of one micro-batch
  double update_s = 0;                   ///< once per step
  double step_s = 0;                     ///< what was minimised: micro-batches * micro_batch_s + update_s
  double lower_bound_s = 0;              ///< on step_s of any choice, feasible or not
  bool hit_time_limit = false;
  std::int64_t fixed_bytes = 0;  ///< states, summed gradients and the largest transient
  std::int64_t slot_bytes = 0;   ///< activations of one micro-batch in flight
};

/// Chooses a strategy for every node of a stage (Alpa, OSDI'22, section 4): builds the selection problem over
/// the stage's nodes, the resting layouts of its states and of values with several users, with equal layers
/// folded into one, and solves it under the memory limit of the cluster's devices. Starts from the choices of
/// `start` where it is given and the stage has them all; the solution is then no worse. May be called by
/// several threads.
StageSolution solve_stage(const PlanningGraph&, const StageRequest&, const MeshPrices&,
                          const SelectionOptions&, const StageSolution* start = nullptr);

}  // namespace alpa
