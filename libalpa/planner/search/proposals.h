#pragma once
#include <vector>

#include "libalpa/planner/search/pipeline_bound.h"
#include "libalpa/planner/search/solved_stages.h"
#include "libalpa/planner/search/stage_choices.h"
#include "libalpa/planner/search/stage_solver.h"
#include "libalpa/planner/stage/stage_problem.h"
#include "libalpa/planner/transfer_ways.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {

/// The stages of a plan that may be worth it, with their solutions.
struct Proposal {
  std::vector<StageRequest> requests;
  std::vector<StageSolution> solutions;
  double estimate_s = 0;  ///< pipeline_seconds of its stages
  int stages_per_mesh = 1;
  std::string schedule = {};      ///< that it is made for; "": the first that may be asked for
  StageTransfers transfers = {};  ///< of its stages; empty: what the options say of all
};

/// Of stages that are solved.
double pipeline_seconds(const Proposal&);

/// Where stages share meshes: a mesh does all micro-batches of its stages, and waits for some of the slowest
/// (PipelineSchedule::bubble).
double shared_pipeline_seconds(const std::vector<StageSeconds>&, const PipelineSchedule&, int stages_per_mesh,
                               int micro_batches);

/// The stages of a Partition, or of a LeastPipeline.
template <class Pipeline>
std::vector<PlacedSpan> placed_spans(const Pipeline& pipeline, const PipelineForm& form,
                                     const StagePlaces& places) {
  std::vector<PlacedSpan> stages;
  int left = static_cast<int>(pipeline.stages.size()), first = 0, devices = places.devices();
  for (const auto& stage : pipeline.stages) {
    stages.push_back({{first, stage.end_layer, stage.devices},
                      places.sides(stage.devices, devices),
                      form.in_flight[left--],
                      step_s(stage)});
    first = stage.end_layer;
    devices -= stage.devices;
  }
  return stages;
}

/// Makes proposals of partitions whose ways are those of modes and of solved stages. Keeps references.
class Proposals {
 public:
  Proposals(const StagePlaces& places, const PipelineForm& form, const StageModes& modes,
            const StageSolver& solver, const SolvedStages& solved, const Cluster& cluster)
      : places_(places), form_(form), modes_(modes), solver_(solver), solved_(solved), cluster_(cluster) {}

  /// With what its stages take where they lie.
  Proposal of(const Partition&) const;

 private:
  std::pair<StageRequest, StageSolution> solution_of(PlacedSpan, int way) const;

  const StagePlaces& places_;
  const PipelineForm& form_;
  const StageModes& modes_;
  const StageSolver& solver_;
  const SolvedStages& solved_;
  const Cluster& cluster_;
};

}  // namespace alpa
