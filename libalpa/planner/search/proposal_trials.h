#pragma once
#include <optional>
#include <string>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/planner/search/constrained_space.h"
#include "libalpa/planner/search/planning_clock.h"
#include "libalpa/planner/search/proposals.h"
#include "libalpa/planner/search/stage_shortfall.h"

namespace alpa {

/// The graph for one number of micro-batches, and its prices.
struct PricedGraph {
  PricedGraph(Graph made, const CostModel& costs, const PlannerOptions& options)
      : graph(std::move(made)),
        planning(prepare(graph, stage_limits(options.constraints, graph))),
        book(graph, costs) {
    planning.overlap = overlap(options).value_or(Overlap::none);
    planning.updates = update_order(options).value_or(UpdateOrder::after_norm);
    const std::optional<BucketSizes> sizes = buckets(options);
    planning.has_buckets = !sizes || sizes->may_be_shared();
    planning.on_host = states_on_host(options, planning.uses);
  }

  Graph graph;
  PlanningGraph planning;
  CostTable book;
};

/// What became of a proposal.
struct ProposalTrial {
  Proposal proposal = {};  ///< the plan's stages, each with its solution; empty where they do not fit
  std::string method, schedule;
  std::optional<Plan> plan = {};
  std::string failure = {};       ///< why there is none, or
  StageShortfall shortfall = {};  ///< likewise, where memory is why
  bool is_too_slow = false;       ///< likewise, where patience is
  bool out_of_time = false;
  bool fits_otherwise = false;  ///< its stages do, under another schedule
};

/// When a proposal is given up.
struct Patience {
  double pipeline_s = infinity;  ///< it is estimated to take that or more
  double stage_s = infinity;     ///< one of its stages takes that or more
  int packings = 3;              ///< its memory could not be packed that often
  bool has_plan = false;         ///< else there has to be time for one
};

/// Makes plans of proposals. Keeps references. Threads may share one, each of which uses `threads`.
class ProposalTrials {
 public:
  ProposalTrials(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options,
                 const PlanningClock& clock)
      : model_(model),
        costs_(costs),
        options_(options),
        effort_(stage_effort(options.effort)),
        clock_(clock) {}

  /// The stages solved to the end, starting from the proposal's solutions where it has them (those that were
  /// solved for just that are taken as they are), then lowered and simulated. Those whose packing takes more
  /// than is left beside what is live are solved once more with that much less memory, or with
  /// rematerialisation. Their meshes must be in the book.
  ProposalTrial try_out(const PricedGraph&, Proposal, const std::string& method, const std::string& schedule,
                        const Patience&, int threads) const;

  /// The same for stages that are solved, under another schedule. Where they are packed once alone, they have
  /// to fit as they are.
  ProposalTrial try_solved(const PricedGraph&, const Proposal&, const std::string& method,
                           const std::string& schedule, const Patience&, int threads) const;

 private:
  struct Attempt;
  void solve_open(const PricedGraph&, Attempt&, int threads) const;
  void solve(const PricedGraph&, Attempt&, std::size_t stage, double enough) const;
  void set_buckets(Plan&, const SumsForBuckets&) const;
  void give_owners(Plan&, const GraphUses&) const;
  void take_what_pays(Plan&, const PricedGraph&, const StageTransfers&, const SumsForBuckets&,
                      const Patience&) const;
  void offer_syncs(Plan&, const SumsForBuckets&, const std::function<void(Plan)>& offer,
                   const Patience&) const;
  void offer_owners(const Plan&, const PricedGraph&, const SumsForBuckets&,
                    const std::function<void(Plan)>& offer) const;
  std::optional<Plan> plan_of(const PricedGraph&, const Proposal&, const std::string& method,
                              const std::string& schedule, const Patience&) const;

  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  const StageEffort effort_;
  const PlanningClock& clock_;
};

}  // namespace alpa
