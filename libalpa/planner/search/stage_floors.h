#pragma once
#include <vector>

#include "libalpa/planner/search/pipeline_bound.h"
#include "libalpa/planner/search/solved_stages.h"
#include "libalpa/planner/search/work_lower_bound.h"

namespace alpa {

/// What the stages that a pipeline may have take at least. Keeps references.
class StageFloors {
 public:
  StageFloors(const StageSpans&, const StageModes&, const WorkLowerBound&, int micro_batches);

  /// Of stages in one of the pipelines that take less than `pipeline_s`, as far as those that were solved
  /// show, for which there are the choices of `none`. With `known_solutions`, solved stages are what their
  /// solutions are: no bound any more, but it shows which stages are still to be solved.
  FloorChoices within(double pipeline_s, const SolvedStages&, bool known_solutions, FloorChoices none) const;

 private:
  void add(const StageSpan&, const StageSides&, StageFloor, double pipeline_s, const SolvedStages&,
           bool known_solutions, FloorChoices&) const;

  const StageSpans& spans_;
  const StageModes& modes_;
  const int micro_batches_;
  std::vector<StageFloor> floors_;  ///< [of spans_.all()] before any is solved, without what arrives
};

}  // namespace alpa
