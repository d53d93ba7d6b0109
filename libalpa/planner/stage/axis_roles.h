#pragma once
#include <vector>

#include "libalpa/planner/stage/mesh_costs.h"
#include "libalpa/planner/stage/planning_graph.h"
#include "libalpa/planner/stage/stage_request.h"

namespace alpa {

/// Which of the node's options (by index) the roles of the axes and the sharding of the state allow.
std::vector<int> allowed_options(const PlanningGraph&, NodeIndex node, const std::vector<NodeOption>&,
                                 const StageRequest&);

/// Over how many devices a strategy of the forward or the backward splits dimensions that are neither samples
/// nor positions nor experts; 1 for sums over micro-batches and the update, which are no work of the model.
std::int64_t tensor_parallel_devices(const Node&, const std::vector<FactorRole>& of_factors, const Strategy&,
                                     const MeshShape&);

/// A parameter is sharded over the data axes or whole along them, as the request says; along an axis of
/// experts it is as may be.
bool may_rest(const ShardingSpec&, const StageRequest&);

}  // namespace alpa
