#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libalpa/planner/search/baselines.h"
#include "libalpa/planner/search/plan_selection.h"

namespace alpa {

/// Tries baselines and pins by several threads, with the same result whatever their number. Keeps references.
class BaselineTrials {
 public:
  BaselineTrials(const CostModel&, const PlannerOptions&, PlanSelection&, PlanningClock&);

  /// Those of the methods that the options want, with so many micro-batches, those first that may be the
  /// fastest. What cannot come near the best plan so far is left at its bound. Goes on whatever the time, as
  /// long as there is no plan and no stop was asked for; false where some were left for that.
  bool try_all(PricedGraph&, int micro_batches, int devices, const std::vector<std::string>& methods);

  /// A pin is tried whatever it takes.
  void try_pinned(PricedGraph&, PinnedPlan);

  /// Names those that were left at their bound among the failures.
  void note_left() const;

  /// Of those that fit; infinite: none does.
  double best_estimate_s(int micro_batches) const;

 private:
  struct Bounded {
    double least_s = 0;
    PinnedPlan pinned;
  };
  struct Trial {
    PinnedPlan pinned;
    ProposalTrial outcome;
  };

  double most_s() const;
  /// Notes those that the constraints forbid, each once.
  bool is_against(const PinnedPlan&, const Graph&);
  bool is_known_short(const PinnedPlan&);
  void leave_slow(std::vector<Bounded>&);
  bool price_meshes(PricedGraph&, const std::vector<Bounded>&, const std::string& name);
  std::vector<Trial> try_out(const PricedGraph&, std::vector<PinnedPlan>, double most_s) const;
  void enter(const PricedGraph&, Trial);

  const CostModel& costs_;
  const PlannerOptions& options_;
  PlanSelection& selection_;
  PlanningClock& clock_;
  const int threads_;
  std::map<int, double> best_estimate_s_;       ///< by micro-batches
  std::set<std::string> against_;               ///< constraints
  std::map<std::string, int> short_of_memory_;  ///< with so many micro-batches, by method
  std::int64_t left_short_ = 0;                 ///< likewise
  std::int64_t left_ = 0;                       ///< at their bounds
  double least_left_s_ = infinity;
};

}  // namespace alpa
