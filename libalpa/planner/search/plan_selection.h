#pragma once
#include <optional>
#include <string>
#include <vector>

#include "libalpa/planner/search/proposal_trials.h"

namespace alpa {

/// Chooses the plan: lowers and simulates the proposals of the searches, keeps the fastest that fits, and why
/// each of the others lost.
class PlanSelection {
 public:
  PlanSelection(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options,
                int devices, PlanningClock& clock)
      : model_(model),
        costs_(costs),
        options_(options),
        devices_(devices),
        clock_(clock),
        trials_(model, costs, options, clock) {}

  /// Under which schedules the stages of a proposal are tried once it is known what they take under one.
  struct OtherSchedules {
    std::string asked;         ///< those of schedules_of()
    bool solves_again = true;  ///< what does not fit as it is, if it would be of the best plan so far
  };

  /// A proposal as of ProposalTrials, which ends once it is clear that a step takes `most_s` or more. May be
  /// called by several threads.
  ProposalTrial try_out(const PricedGraph& priced, Proposal proposal, const std::string& method,
                        const std::string& schedule, double most_s, int threads) const {
    return trials_.try_out(priced, std::move(proposal), method, schedule,
                           {.pipeline_s = most_s, .stage_s = most_s, .has_plan = has_winner()}, threads);
  }
  /// What came out joins the candidates, or the failures; so do the same stages under `others`, unless they
  /// take as long as the best plan so far whatever the schedule. Returns the proposal that was tried out.
  Proposal enter(const PricedGraph&, ProposalTrial, const OtherSchedules& others, int threads);

  void note_failure(const std::string& method, const std::string& why);
  void note_shortfall(const std::string& method, const StageShortfall&);

  /// The least estimate of a plan that fits and uses all devices, once the winner is frozen of those
  /// evaluated since; infinite: none yet.
  double best_estimate_s() const { return best_estimate_s_; }
  /// Of the plan that the next is to be better than; infinite: none yet.
  double best_step_s() const;
  bool has_winner() const { return best_.has_value(); }
  bool out_of_time() const { return out_of_time_; }

  /// What there is no time for is left out, once there is a plan or a stop was asked for.
  bool has_time() const { return !clock_.is_over() || (!has_winner() && !clock_.is_stopped()); }

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
    bool fits_otherwise = false;  ///< as of ProposalTrial
  };
  bool note(ProposalTrial&);
  bool keep(Plan, double estimate_s, const std::string& method);
  void compare(std::size_t entry, double estimate_s);
  void simulate_all_of_it();
  std::string verdict(std::size_t entry) const;
  [[noreturn]] void refuse() const;

  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  int devices_;
  PlanningClock& clock_;
  const ProposalTrials trials_;
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
