#pragma once
#include <cstdint>
#include <map>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/stage_modes.h"

namespace alpa {

/// What a second of an update counts that another stage's is longer than; and where it is to be known what
/// micro-batches take at least.
inline constexpr double kUpdateCountsLittle = 0.01;

/// As much more work as is worth it where a stage's bound, or what fits, is hard to find.
inline constexpr std::int64_t kHarder = 8;

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
  struct Trial {
    double lower_bound_s = 0;
    std::int64_t effort = 0;  ///< that was allowed; 0: the bound sufficed
  };
  std::map<StageMode, Trial> tried;  ///< the bound on others is that of the layers in them
  std::int64_t least_memory = 0;
  bool is_rough = false;  ///< not at its best, as another one of its partition was slower
};

/// Solves stages exactly, starting from their templates. Keeps references. Threads may share one.
class StageSolver {
 public:
  /// `most_in_flight`: of any stage.
  StageSolver(const PlanningGraph&, const SearchSpace&, const CostTable&, const StageSpans&,
              const StageModes&, const PlanningClock&, int most_in_flight);

  struct Limits {
    int stages = 1;             ///< of the pipeline
    double enough = -infinity;  ///< of choices that take as much or less any will do
    double cutoff = infinity;   ///< those that take as much or more are of no use
  };
  SolvedStage solve(const PlacedSpan&, const Limits&) const;

  /// Whether work may raise the bound; and the stage with the mode tried that holds it down, or tried harder.
  bool is_open(const PlacedSpan&, const SolvedStage&) const;
  SolvedStage with_higher_bound(const PlacedSpan&, const Limits&, SolvedStage) const;

  /// By what is known of the modes that were tried, and of others.
  double lower_bound_s(const PlacedSpan& stage, const SolvedStage& solved) const {
    return least_mode(stage, solved).second.lower_bound_s;
  }

  StageRequest request_of(const PlacedSpan&, const StageMode&) const;

 private:
  enum class Outcome { fits, short_of_memory, left_out };
  Outcome try_mode(const PlacedSpan&, const Limits&, std::int64_t effort, const StageMode&, const StageWay&,
                   SolvedStage&) const;
  double least_s(const PlacedSpan&, const StageMode&) const;
  double least_arrivals_s(const PlacedSpan&) const;
  /// The mode with the least bound, and that.
  std::pair<StageMode, SolvedStage::Trial> least_mode(const PlacedSpan&, const SolvedStage&) const;

  const PlanningGraph& planning_;
  const SearchSpace& space_;
  const CostTable& book_;
  const StageSpans& spans_;
  const StageModes& modes_;
  const PlanningClock& clock_;
  const int most_in_flight_;
};

}  // namespace alpa
