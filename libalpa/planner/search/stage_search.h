#pragma once
#include <memory>
#include <vector>

#include "libalpa/planner/search/planning_clock.h"
#include "libalpa/planner/search/proposals.h"
#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/stage_shortfall.h"

namespace alpa {

/// What the search found, or what became of it.
struct SearchOutcome {
  std::vector<Proposal> proposals = {};         ///< the best for each number of stages that has one
  std::vector<Proposal> on_shared_meshes = {};  ///< as of shared_mesh_proposals
  double lower_bound_s = 0;     ///< on the step of every plan of the space; 0: no time to find one
  double bound_of_first_s = 0;  ///< likewise, of those under the first schedule
  double work_bound_s = 0;  ///< likewise, also where communication overlaps, and where stages share meshes
  bool out_of_time = false;
  StageShortfall shortfall = {};  ///< the least, where memory is why there are no proposals
};

/// Cuts the layers into stages on submeshes by the dynamic program of Alpa (OSDI'22, section 5.2). What a
/// stage takes is first estimated by templates (stage_templates.h); the stages of the best partition are then
/// solved exactly, and the program runs again, until it finds a partition of solved stages; and likewise with
/// bounds in place of estimates, until no other partition can be better or the work is used up. By several
/// threads, with the same result whatever their number. Keeps references to all but the space.
class StageSearch {
 public:
  StageSearch(const PlanningGraph&, const SearchSpace&, CostTable&, PlanningClock&);
  ~StageSearch();

  SearchOutcome search();

  /// After that, once the fastest plan of all searches is known, by its step and by the least estimate:
  /// raises the bound until it is as near that step as the effort asks for, or `enough_s`: a higher one is of
  /// no use. What it finds better meanwhile is proposed.
  SearchOutcome prove(double best_estimate_s, double best_step_s, double enough_s);

 private:
  class State;
  std::unique_ptr<State> state_;  ///< null: there was no time to price its meshes
};

}  // namespace alpa
