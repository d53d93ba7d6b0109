#pragma once
#include <vector>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"
#include "libalpa/program/order/simulate.h"

namespace alpa {

/// One run of a segment on a mesh.
struct RunBar {
  SegmentKind kind = SegmentKind::forward;
  StageIndex stage{0};   ///< -1: the update
  int micro_batch = -1;  ///< likewise
  double start_s = 0, end_s = 0;
  double compute_s = 0, collective_s = 0, transfer_s = 0;  ///< its instructions, whatever runs beside them
};

/// What each device of a mesh holds from then on.
struct MemoryStep {
  double at_s = 0;
  std::int64_t bytes = 0;
};

/// A simulated step to look at.
struct StepPicture {
  struct OfMesh {
    std::vector<StageIndex> stages;
    std::vector<RunBar> bars;        ///< by start
    std::vector<MemoryStep> memory;  ///< states and scratch, and activations of micro-batches in flight
  };
  int micro_batches =
      0;              ///< that are drawn: with fewer than the plan's, some of the steady state is left out
  double step_s = 0;  ///< of these, until the last of their bars ends
  Indexed<MeshIndex, OfMesh> meshes;
};

/// Simulates the plan with as many micro-batches as it takes to fill and empty the pipeline and some between,
/// and no more than make `most_bars` bars (though two): what is seen of warm-up and drain is the whole
/// step's.
StepPicture step_picture(const Plan&, const Graph&, const CostModel&, int most_bars = 4000);

}  // namespace alpa
