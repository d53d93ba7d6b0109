#pragma once
#include <cstdint>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/stage_modes.h"

namespace alpa {

/// A stage of a partition.
struct PlacedSpan {
  StageSpan span;
  StageSides sides;
  int in_flight = 1;
  double step_s = 0;         ///< as the partition has it
  double update_weight = 1;  ///< as of StageRequest
};

/// A stage with so many micro-batches in flight, solved in the modes that could be its best.
struct SolvedStage {
  int id = 0;
  StageSpan span;
  StageMode mode;
  double update_weight = 1;
  StageSolution best;
  double lower_bound_s = infinity;
  std::int64_t least_memory = 0;
  bool is_rough = false;  ///< not at its best, as another one of its partition was slower
};

/// Solves stages exactly, starting from their templates. Keeps references. Threads may share one.
class StageSolver {
 public:
  /// `most_in_flight`: of any stage.
  StageSolver(const PlanningGraph&, const SearchSpace&, const CostTable&, const StageSpans&,
              const StageModes&, const PlanningClock&, int most_in_flight);

  /// Of a pipeline of so many stages. Choices that take `cutoff` or more are of no use; of those that take
  /// `enough` or less any will do.
  SolvedStage solve(const PlacedSpan&, int stages, double enough, double cutoff) const;

  StageRequest request_of(const PlacedSpan&, const StageMode&) const;

 private:
  const PlanningGraph& planning_;
  const SearchSpace& space_;
  const CostTable& book_;
  const StageSpans& spans_;
  const StageModes& modes_;
  const PlanningClock& clock_;
  const int most_in_flight_;
};

}  // namespace alpa
