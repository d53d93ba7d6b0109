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

  /// Once the bounds on so many devices have risen.
  void raise(int devices);

  /// Of stages in one of the pipelines that take less than `pipeline_s`, as far as those that were solved
  /// show, for which there are the choices of `none`. With `known_solutions`, solved stages are what their
  /// solutions are: no bound any more, but it shows which stages are still to be solved.
  FloorChoices within(double pipeline_s, const SolvedStages&, bool known_solutions, FloorChoices none,
                      int threads) const;

 private:
  /// Of stages that hold so many micro-batches or more.
  struct Held {
    int in_flight = 1;
    StageFloor floor;
    double weighed_s = 0;  ///< of all micro-batches and kUpdateTimes updates
  };
  std::vector<Held> floors_of(const StageSpan&) const;
  void add(const StageSpan&, const StageSides&, const std::vector<Held>&, double pipeline_s,
           const SolvedStages&, bool known_solutions, FloorChoices&) const;

  const StageSpans& spans_;
  const StageModes& modes_;
  const WorkLowerBound& work_;
  const int micro_batches_;
  /// [kind of span] before any is solved, without what arrives; with more in flight the floor is higher
  std::vector<std::vector<Held>> floors_;
};

}  // namespace alpa
