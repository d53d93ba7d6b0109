#pragma once
#include <utility>
#include <vector>

#include "libalpa/planner/search/pipeline_bound.h"
#include "libalpa/planner/search/proposals.h"
#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/solved_stages.h"
#include "libalpa/planner/search/stage_floors.h"

namespace alpa {

/// What bounds all pipelines of a space from below, by templates, prices of memory and stages that were
/// solved, and what would raise that. Keeps references.
class PipelineBounds {
 public:
  /// `none`: choices of stages as of FloorChoices, without any. `least_s`: no pipeline takes less.
  PipelineBounds(const SearchSpace&, const StageSpans&, StageModes&, const WorkLowerBound&, SolvedStages&,
                 const StageSolver&, FloorChoices none, std::vector<PipelineForm>, double least_s,
                 PlanningClock&, FillOptions);

  /// Under any schedule, what holds the bound down: of pipelines that take less than `pipeline_s`. No stages:
  /// none does or, with 0 s, there was no time to look.
  std::pair<LeastPipeline, const PipelineForm*> least(double pipeline_s);
  /// Under the first schedule, where stages that are solved take what their solutions do, and lie where they
  /// are likely to.
  LeastPipeline least_unsolved(double pipeline_s) const;

  /// On all pipelines that take less than `best_s`, or that: under the first schedule, and under any.
  double bound_of_first(double best_s) { return bound_under(0, best_s, best_s); }
  double bound_of_all(double best_s);

  /// By what memory is worth to the slowest of the stages for which that is not known. False: to none.
  bool raise(const LeastPipeline&, const PipelineForm&, double best_s);

  /// Stages of a pipeline whose bounds work may raise, with their updates counted in full or little: those
  /// first by which its own bound may rise the most.
  std::vector<PlacedSpan> worth_work(const LeastPipeline&, const PipelineForm&) const;

 private:
  /// `known_solutions`: as of StageFloors.
  LeastPipeline least(double pipeline_s, bool known_solutions, const PipelineForm&) const;
  LeastPipeline least_from(double& known_s, double pipeline_s, bool known_solutions,
                           const PipelineForm&) const;
  double bound_under(std::size_t form, double best_s, double bound_s);
  StageSeconds likely_s(const PlacedSpan&) const;

  const SearchSpace& space_;
  StageModes& modes_;
  SolvedStages& solved_;
  const StageSolver& solver_;
  const FloorChoices none_,
      none_likely_;  ///< where neighbours are known to lie, and where they are likely to
  const std::vector<PipelineForm> forms_;
  std::vector<double> known_s_;  ///< of forms_: bounds when they were last found
  PlanningClock& clock_;
  const FillOptions filling_;
  StageFloors floors_;
};

}  // namespace alpa
