#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/base/log.h"
#include "libalpa/planner/search/offered_spaces.h"
#include "libalpa/planner/search/plan_selection.h"
#include "libalpa/planner/search/search_space.h"

namespace alpa {

/// Tries what searches propose, with the same result whatever the number of threads. Keeps references.
class SearchTrials {
 public:
  SearchTrials(const CostModel& costs, const PlannerOptions& options, const OfferedSpaces& offered,
               PlanSelection& selection, PlanningClock& clock, Log& log)
      : costs_(costs),
        options_(options),
        offered_(offered),
        selection_(selection),
        clock_(clock),
        log_(log) {}

  /// As many of the first that fit as the effort has simulated, each under the first schedule and then, once
  /// it is entered, under the others. Where nodes differ, also with their layers cut anew; where the space
  /// leaves selective recomputation out, also with that.
  void try_all(std::vector<Proposal>, const PricedGraph&, const SearchSpace&, const std::string& method);

  /// As many of the first that fit and may be faster than the best so far.
  void try_shared(std::vector<Proposal>, const PricedGraph&, const std::string& method);

  /// The least that one of them takes with so many micro-batches; infinite: none fits.
  double best_estimate_s(int micro_batches) const;

  /// What selective recomputation gained at most, of what it was tried on with so many micro-batches.
  double selective_gain(int micro_batches) const;

 private:
  struct Trial {
    double proposed_s = 0;  ///< the proposal's own estimate
    ProposalTrial outcome = {};
  };
  struct Found {
    double estimate_s = infinity, selective_gain = 0;
  };

  std::vector<Trial> try_out(const PricedGraph&, std::span<Proposal>, const std::string& method) const;
  Proposal enter(const PricedGraph&, Trial);
  Proposal try_one(const PricedGraph&, Proposal, const std::string& method);
  void try_selective(const PricedGraph&, Proposal entered, const std::string& method);
  void even_out(const PricedGraph&, const SearchSpace&, Proposal entered, const std::string& method);

  const CostModel& costs_;
  const PlannerOptions& options_;
  const OfferedSpaces& offered_;
  PlanSelection& selection_;
  PlanningClock& clock_;
  Log& log_;
  std::map<int, Found> found_;  ///< by micro-batches
};

}  // namespace alpa
