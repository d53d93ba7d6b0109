#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "libalpa/planner/search/pipeline_bound.h"
#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/solved_stages.h"
#include "libalpa/planner/search/stage_floors.h"

namespace alpa {

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

/// What bounds all pipelines of a space from below, by templates, prices of memory and stages that were
/// solved, and what would raise that. Keeps references.
class PipelineBounds {
 public:
  /// `none`: choices of stages as of FloorChoices, without any. `stops`: as of least_pipelines.
  PipelineBounds(const SearchSpace&, const StageSpans&, StageModes&, const WorkLowerBound&, SolvedStages&,
                 const StageSolver&, FloorChoices none, std::vector<PipelineForm>, PlanningClock&,
                 std::function<bool()> stops);

  /// Of those that take less than `pipeline_s`; no stages: none does. `known_solutions`: as of StageFloors.
  LeastPipeline least(double pipeline_s, bool known_solutions, const PipelineForm&) const;
  /// Under any schedule: what holds the bound down.
  std::pair<LeastPipeline, const PipelineForm*> least(double pipeline_s);

  /// On all pipelines under that schedule, or `bound_s` where that is less: a bound under others, or the best
  /// that is found.
  double bound_under(const PipelineForm&, double best_s, double bound_s);
  /// Under any schedule, once it is known under the first.
  double bound_under_others(double best_s, double of_first_s);

  /// By what memory is worth to the slowest of the stages for which that is not known. False: to none.
  bool raise(const LeastPipeline&, const PipelineForm&, double best_s);

  /// Stages of a pipeline whose bounds work may raise, with their updates counted in full or little: those
  /// first by which its own bound may rise the most.
  std::vector<PlacedSpan> worth_work(const LeastPipeline&, const PipelineForm&) const;

 private:
  StageSeconds likely_s(const PlacedSpan&) const;

  const SearchSpace& space_;
  StageModes& modes_;
  SolvedStages& solved_;
  const StageSolver& solver_;
  const FloorChoices none_;
  const std::vector<PipelineForm> forms_;
  std::vector<double> known_s_;  ///< of forms_: bounds when they were last found
  PlanningClock& clock_;
  const std::function<bool()> stops_;
  StageFloors floors_;
};

}  // namespace alpa
