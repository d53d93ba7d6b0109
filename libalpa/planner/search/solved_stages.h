#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "libalpa/planner/search/stage_choices.h"
#include "libalpa/planner/search/stage_solver.h"

namespace alpa {

/// What a solution takes in a pipeline.
StageSeconds seconds_of(const StageSolution&, int micro_batches);

/// Stages that were solved, and what that shows of the estimates of others of their kind. Keeps references.
class SolvedStages {
 public:
  SolvedStages(const StageSpans& spans, const StageModes& modes, int micro_batches)
      : spans_(spans),
        modes_(modes),
        micro_batches_(micro_batches),
        corrections_(static_cast<std::size_t>(spans.kinds())) {}

  /// Whether one solution serves both.
  bool are_equal(const PlacedSpan& a, const PlacedSpan& b) const { return key_of(a) == key_of(b); }
  /// Null: neither it nor an equal one was solved.
  const SolvedStage* find(const PlacedSpan&) const;
  void note(const PlacedSpan&, SolvedStage);
  /// In place of what is known of it.
  void replace(const PlacedSpan& stage, SolvedStage solved) { keep(stage, std::move(solved)); }

  /// Once the bounds of stages that are not tried have risen.
  void raise_bounds(const StageSolver&);

  /// What a partition may choose from: estimates, as corrected by what was solved, and what was solved, by
  /// ways whose ids are negative.
  StageChoices choices(const StageChoices& estimated) const;
  const SolvedStage& of_way(int id) const { return *of_id_[-1 - id]; }

  struct InFlight {
    int micro_batches = 1;
    const SolvedStage* stage = nullptr;
  };
  /// Of that kind between such neighbours, by their micro-batches in flight; those whose update counts in
  /// full, or those whose counts little.
  std::vector<InFlight> of_kind(int kind, const StageSides&, bool update_counts_little) const;

 private:
  /// Kind of span, neighbours, micro-batches in flight, whether its update counts little.
  using Key = std::tuple<int, StageSides, int, bool>;
  Key key_of(const PlacedSpan&) const;
  void keep(const PlacedSpan&, SolvedStage);
  void correct(const PlacedSpan&, const SolvedStage&);

  /// Estimates of a kind are that much too low, and memory allows fewer in flight.
  struct Correction {
    double factor = 1;
    int too_many_in_flight = 1 << 20;
  };

  const StageSpans& spans_;
  const StageModes& modes_;
  const int micro_batches_;
  std::vector<Correction> corrections_;  ///< [kind of span]
  std::map<Key, SolvedStage> solved_;
  std::vector<const SolvedStage*> of_id_;  ///< [-1 - id]
};

}  // namespace alpa
