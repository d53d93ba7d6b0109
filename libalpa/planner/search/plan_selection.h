#pragma once
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/planner/search/constrained_space.h"
#include "libalpa/planner/search/planning_clock.h"
#include "libalpa/planner/search/stage_search.h"

namespace alpa {

/// The graph for one number of micro-batches, and its prices.
struct PricedGraph {
  PricedGraph(Graph made, const CostModel& costs, const PlanConstraints& constraints)
      : graph(std::move(made)),
        planning(prepare(graph, stage_limits(constraints, graph))),
        book(graph, costs) {}

  Graph graph;
  PlanningGraph planning;
  CostTable book;
};

/// Chooses the plan: lowers and simulates the proposals of the searches, keeps the fastest that fits, and why
/// each of the others lost.
class PlanSelection {
 public:
  PlanSelection(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options,
                int devices, PlanningClock& clock)
      : model_(model),
        costs_(costs),
        options_(options),
        effort_(stage_effort(options.effort)),
        devices_(devices),
        clock_(clock) {}

  /// What became of a proposal.
  struct Trial {
    Proposal proposal;  ///< the plan's stages, each with its solution; empty where they do not fit
    std::string method, schedule;
    std::optional<Plan> plan;
    std::string failure;       ///< why there is none, or
    StageShortfall shortfall;  ///< likewise, where memory is why
    bool out_of_time = false;
    bool fits_otherwise = false;  ///< its stages do, under another schedule
  };

  /// Under which schedules the stages of a proposal are tried once it is known what they take under one.
  struct OtherSchedules {
    std::string asked;         ///< those of schedules_of()
    bool solves_again = true;  ///< what does not fit as it is, if it would be of the best plan so far
  };

  /// The stages solved to the end, starting from the proposal's solutions where it has them (those that were
  /// solved for just that are taken as they are), then lowered and simulated. Those whose packing takes more
  /// than is left beside what is live are solved once more with that much less memory, or with
  /// rematerialisation. Their meshes must be in the book. Ends once it is clear that a step takes `most_s` or
  /// more. May be called by several threads, each of which uses `threads`.
  Trial try_out(const PricedGraph&, Proposal, const std::string& method, const std::string& schedule,
                double most_s, int threads) const;
  /// What came out joins the candidates, or the failures; so do the same stages under `others`, unless they
  /// take as long as the best plan so far whatever the schedule. Returns the proposal that was tried out.
  Proposal enter(const PricedGraph&, Trial, const OtherSchedules& others, int threads);

  void note_failure(const std::string& method, const std::string& why);
  void note_shortfall(const std::string& method, const StageShortfall&);

  /// The least estimate of a plan that fits and uses all devices, once the winner is frozen of those
  /// evaluated since; infinite: none yet.
  double best_estimate_s() const { return best_estimate_s_; }
  bool has_winner() const { return best_.has_value(); }
  bool out_of_time() const { return out_of_time_; }

  /// The winner is the fastest so far; what is evaluated later is compared with it and no more.
  /// Throws Error(infeasible) where there is none.
  const Plan& freeze();

  /// The winner with all candidates. Throws Error(infeasible) where there is none.
  Plan result();

 private:
  struct Entry {
    Candidate candidate;  ///< with the schedule of whatever stages
    Plan plan;            ///< without what is the same in all
    int stages = 0;       ///< the same under several schedules
  };
  struct Failure {
    Candidate candidate;
    int stages = 0;
    bool fits_otherwise = false;  ///< as of Trial
  };
  /// When a proposal is given up.
  struct Patience {
    double pipeline_s = infinity;  ///< it is estimated to take that or more
    double stage_s = infinity;     ///< one of its stages takes that or more
    int packings = 3;              ///< its memory could not be packed that often
  };

  struct Attempt;
  Trial tried(const PricedGraph&, Proposal, const std::string& method, const std::string& schedule, Patience,
              int threads) const;
  Trial tried_otherwise(const PricedGraph&, const Proposal&, const std::string& method,
                        const std::string& schedule, bool solves_again, int threads) const;
  void solve_open(const PricedGraph&, Attempt&, int threads) const;
  void solve(const PricedGraph&, Attempt&, std::size_t stage, double enough) const;
  Plan plan_of(const PricedGraph&, const Proposal&, const std::string& method,
               const std::string& schedule) const;
  bool note(Trial&);
  double best_step_s() const;  ///< of those that the next is to be better than; infinity: none yet
  bool keep(Plan, double estimate_s, const std::string& method);
  void compare(std::size_t entry, double estimate_s);
  void simulate_all_of_it();
  std::string verdict(std::size_t entry) const;
  [[noreturn]] void refuse() const;

  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  const StageEffort effort_;
  int devices_;
  PlanningClock& clock_;
  std::vector<Entry> entries_;  ///< plans that fit, each once
  std::vector<Failure> failures_;
  int stages_ = 0;                     ///< Entry::stages of what was entered last
  std::optional<std::size_t> best_;    ///< the winner
  std::optional<std::size_t> beside_;  ///< the fastest of those evaluated after it was frozen
  bool frozen_ = false;
  double best_estimate_s_ = infinity;
  bool out_of_time_ = false;
  StageShortfall least_shortfall_;
};

}  // namespace alpa
