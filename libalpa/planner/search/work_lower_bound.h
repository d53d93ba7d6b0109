#pragma once
#include <map>
#include <vector>

#include "libalpa/planner/search/layer_sums.h"
#include "libalpa/planner/search/pipeline_bound.h"
#include "libalpa/planner/stage/mesh_costs.h"
#include "libalpa/planner/stage/planning_graph.h"
#include "libalpa/planner/stage/stage_request.h"

namespace alpa {

/// Seconds of one micro-batch of a layer, of the forward in it, and of its update, with each node at its
/// fastest, and nothing ever converted or passed on: computation alone.
struct LayerLowerBound {
  double forward_s = 0, micro_batch_s = 0, update_s = 0;
  double weights_s = 0;  ///< of a micro-batch, what leads to gradients of weights alone
  /// Of a forward, what comes after all that later layers get; of a backward, after all that earlier ones do,
  /// and of that what does not lead to gradients of weights alone.
  double forward_end_s = 0, backward_end_s = 0, inputs_end_s = 0;
  bool sends_last = false;  ///< nothing comes after it in the forward
};
/// [layer] Of all layers.
std::vector<LayerLowerBound> layer_lower_bounds(const PlanningGraph&, const MeshCosts&);

/// [stage] However each is split. Their meshes must be in the book.
std::vector<StageFloor> stage_floors(const PlanningGraph&, const CostTable&,
                                     const std::vector<StageRequest>&);

/// Bounds from below on what ranges of layers take, before any stage is solved: each node at its fastest,
/// nothing ever converted or passed on. So they hold whatever communication goes on beside computation. In
/// device-seconds they add up over stages, which bounds what the rest of a pipeline takes.
class WorkLowerBound {
 public:
  /// Stages of these numbers of devices, each seen as any of its mesh_shapes(), which must be in the book.
  WorkLowerBound(const PlanningGraph&, const CostTable&, const std::vector<int>& sizes, int devices_per_node,
                 int mesh_axes);

  /// Of layers on that many devices, all but the step.
  StageFloor floor(int first_layer, int end_layer, int size) const;

  /// Seconds of one micro-batch of all other layers, which share `rest` devices: no stage among them, nor
  /// their sum, takes less.
  double rest_s(int first_layer, int end_layer, int rest) const;

 private:
  struct OfSize {
    LayerSums micro_batch, forward, inputs, backward;           ///< inputs: without weights_s
    std::vector<double> forward_end, backward_end, inputs_end;  ///< [layer] the most of any mesh
  };
  std::map<int, OfSize> of_size_;
  std::vector<bool> sends_last_;  ///< [layer]
  LayerSums device_;              ///< device-seconds of a micro-batch, on the size that needs least
};

}  // namespace alpa
