#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/plan/plan.h"
#include "libalpa/planner/dimension_roles.h"
#include "libalpa/planner/layer_classes.h"
#include "libalpa/sharding/conversion.h"
#include "libalpa/solver/strategy_selection.h"

namespace alpa {

/// What a mesh axis may be used for. Baselines and pins are the free search with its axes told what to do.
enum class AxisRole {
  free,
  data,      ///< splits the sample wherever there is one
  tensor,    ///< splits neither sample nor sequence
  sequence,  ///< splits the sequence wherever there is one
};

/// How much of the training state is spread over the data axes (ZeRO, SC'20); `free` leaves it to the search.
enum class StateSpread { free, none, optimizer, gradients, parameters };

struct StageRequest {
  int first_layer = 0, end_layer = 0;
  MeshShape mesh;
  int first_device = 0;
  int micro_batches = 1;
  int in_flight = 1;           ///< micro-batches whose activations are held at once
  bool rematerialize = false;
  std::vector<AxisRole> roles; ///< per axis; empty: all free
  StateSpread spread = StateSpread::free;
};

/// One stage's strategies, what they cost, and what memory they take, as the selection problem sees it. Exact figures come
/// from lowering.
struct StageSolution {
  bool feasible = false;
  std::string why_not;               ///< where it is not
  std::int64_t least_memory = 0;     ///< where memory is why: what it would need at least
  std::map<int, Strategy> node_strategy;
  std::map<int, ShardingSpec> value_layout;
  std::map<int, ShardingSpec> arriving;  ///< values made elsewhere -> layout they arrive in
  double micro_batch_s = 0;          ///< forward and backward of one micro-batch
  double update_s = 0;               ///< once per step
  double lower_bound_s = 0;          ///< on micro_batches * micro_batch_s + update_s
  std::int64_t fixed_bytes = 0;      ///< states, summed gradients and the largest transient
  std::int64_t slot_bytes = 0;       ///< activations of one micro-batch in flight
};

/// What all stage problems of one graph share.
struct PlanningGraph {
  const Graph* graph = nullptr;
  LayerClasses classes;
  std::vector<std::vector<FactorRole>> roles;  ///< of factors
  std::vector<std::vector<int>> consumers;     ///< [value] -> nodes, without the global norm
};

PlanningGraph prepare(const Graph&);

/// Chooses a strategy for every node of a stage (Alpa, OSDI'22, section 4): builds the selection problem over the stage's
/// nodes, the resting layouts of its states and of values with several users, with equal layers folded into one, and
/// solves it under the memory limit of the cluster's devices.
StageSolution solve_stage(const PlanningGraph&, const StageRequest&, const CostModel&, const SelectionOptions&);

}  // namespace alpa
