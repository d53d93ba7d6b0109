#include "libalpa/planner/search/plan_selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/search/lasting_bytes.h"
#include "libalpa/planner/search/schedule_choice.h"

namespace alpa {
namespace {

constexpr double kNear = 1.05;  ///< schedules that may turn out the fastest

std::int64_t fullest_device(const Plan& plan) {
  std::int64_t most = 0;
  for (const MeshPrediction& mesh : plan.prediction.meshes) most = std::max(most, mesh.memory.total);
  return most;
}

/// A schedule makes no difference to one stage.
std::string form(std::ptrdiff_t stages, std::ptrdiff_t meshes, int micro_batches,
                 const std::string& schedule) {
  return count_text(stages, "stage") + (meshes < stages ? fmt::format(" on {} meshes", meshes) : "") + ", " +
         count_text(micro_batches, "micro-batch") + (stages > 1 ? ", " + schedule : "");
}

/// Less a step does not take, whatever the schedule.
double slowest_s(const std::vector<StageSolution>& solutions) {
  return std::ranges::max(solutions, {}, &StageSolution::step_s).step_s;
}

/// The same in all but what they are called.
bool same_plan(const Plan& a, const Plan& b) {
  return a.micro_batches == b.micro_batches && a.schedule == b.schedule && a.overlap == b.overlap &&
         a.updates == b.updates && a.meshes == b.meshes && a.stages == b.stages &&
         a.node_strategy == b.node_strategy && a.value_layout == b.value_layout &&
         a.segment_layouts == b.segment_layouts && a.transfers == b.transfers && a.inputs == b.inputs &&
         a.sync == b.sync && a.on_host == b.on_host;
}

}  // namespace

Proposal PlanSelection::enter(const PricedGraph& priced, ProposalTrial trial, const OtherSchedules& others,
                              int threads) {
  ++stages_;
  const bool is_new = note(trial);
  const Proposal& proposal = trial.proposal;
  if (!is_new || slowest_s(proposal.solutions) >= best_step_s()) return std::move(trial.proposal);
  const auto stages = static_cast<int>(proposal.requests.size());
  const int micro_batches = proposal.requests.front().micro_batches;
  std::vector<std::string> schedules =
      schedules_of(others.asked, stages, proposal.stages_per_mesh, micro_batches);
  std::erase(schedules, trial.schedule);
  const bool solves_again = others.solves_again && entries_.back().candidate.step_s == best_step_s();
  const Patience patience{
      .stage_s = best_step_s(), .packings = solves_again ? Patience{}.packings : 1, .has_plan = has_winner()};
  const int count = static_cast<int>(schedules.size());
  std::vector<ProposalTrial> trials(schedules.size());
  run_tasks(count, threads, [&](int i) {
    trials[i] = trials_.try_solved(priced, proposal, trial.method, schedules[i], patience,
                                   std::max(1, threads / count));
  });
  for (ProposalTrial& other : trials) {
    other.fits_otherwise = true;
    if (!other.plan)
      other.method += ": " + form(stages, stages / proposal.stages_per_mesh, micro_batches, other.schedule);
    note(other);
  }
  return std::move(trial.proposal);
}

/// Whether it is a plan that was not known.
bool PlanSelection::note(ProposalTrial& trial) {
  out_of_time_ |= trial.out_of_time;
  if (trial.plan) return keep(std::move(*trial.plan), trial.proposal.estimate_s, trial.method);
  if (trial.shortfall.bytes > 0)
    note_shortfall(trial.method, trial.shortfall);
  else
    note_failure(trial.method, trial.failure);
  failures_.back().candidate.schedule = trial.schedule;
  failures_.back().fits_otherwise = trial.fits_otherwise;
  return false;
}

bool PlanSelection::keep(Plan plan, double estimate_s, const std::string& method) {
  plan.prediction.estimate_s = estimate_s;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (same_plan(entries_[i].plan, plan)) {
      entries_[i].candidate.method += " = " + method;
      compare(i, estimate_s);
      return false;
    }
  const Candidate candidate{method,
                            plan.prediction.step_s,
                            fullest_device(plan),
                            "",
                            plan.prediction.meshes[busiest_mesh(plan.prediction)],
                            plan.schedule};
  entries_.push_back({candidate, std::move(plan), stages_});
  compare(entries_.size() - 1, estimate_s);
  return true;
}

void PlanSelection::compare(std::size_t entered, double estimate_s) {
  Entry& entry = entries_[entered];
  if (entry.plan.devices() != devices_ && options_.method == "auto" && !options_.pin) {
    // A job of that many ranks could not run it.
    entry.candidate.verdict = fmt::format("for comparison: --devices {}", entry.plan.devices());
    return;
  }
  // Those of stages that share meshes are by another formula, which searches do not go by.
  if (entry.plan.meshes.size() == entry.plan.stages.size())
    best_estimate_s_ = std::min(best_estimate_s_, estimate_s);
  std::optional<std::size_t>& best = frozen_ ? beside_ : best_;
  if (!best || entry.candidate.step_s < entries_[*best].candidate.step_s) best = entered;
  clock_.found(entry.candidate.step_s);
}

double PlanSelection::best_step_s() const {
  const std::optional<std::size_t>& best = frozen_ ? beside_ : best_;
  return best ? entries_[*best].candidate.step_s : infinity;
}

void PlanSelection::note_failure(const std::string& method, const std::string& why) {
  failures_.push_back({{method, 0, 0, why}, stages_});
}

void PlanSelection::note_shortfall(const std::string& method, const StageShortfall& shortfall) {
  failures_.push_back({{method, 0, shortfall.bytes,
                        fmt::format("layers {} to {} need {} at least", shortfall.first_layer,
                                    shortfall.end_layer - 1, bytes_text(shortfall.bytes))},
                       stages_});
  if (least_shortfall_.bytes > 0 && shortfall.bytes >= least_shortfall_.bytes) return;
  least_shortfall_ = shortfall;
  if (shortfall.there == 0) least_shortfall_.there = costs_.cluster().memory_bytes;
}

const Plan& PlanSelection::freeze() {
  if (!best_) refuse();
  frozen_ = true;
  best_estimate_s_ = infinity;
  return entries_[*best_].plan;
}

/// What is reported of an entry beside the winner.
std::string PlanSelection::verdict(std::size_t i) const {
  const Candidate &own = entries_[i].candidate, &winner = entries_[*best_].candidate;
  if (i == *best_) return beside_ == best_ ? "chosen; the search's own best too" : "chosen";
  if (!own.verdict.empty()) return own.verdict;
  const std::string ratio = fmt::format("{:.3f} x this plan's step time", own.step_s / winner.step_s);
  const std::string slower = own.step_s < winner.step_s ? "" : why_slower(own, winner);
  if (i == beside_) return "the search's own best: " + ratio + (slower.empty() ? "" : "; " + slower);
  return slower.empty() ? "of the search: " + ratio : slower;
}

void PlanSelection::refuse() const {
  if (least_shortfall_.bytes == 0)
    throw Error(ErrorKind::infeasible,
                failures_.empty() ? fmt::format("method '{}' has no plan for this model on {} devices",
                                                options_.method, devices_)
                                  : fmt::format("no plan: {}", failures_.front().candidate.verdict),
                "alpa-plan --method auto, or other --devices and --micro-batches");
  const auto& [first, end, devices, proven, limit] = least_shortfall_;
  const Graph graph = model_.graph(model_.group_samples);
  const MemoryUse lasting =
      share_of(lasting_bytes(graph, first, end, states_on_host(options_, GraphUses(graph))), devices);
  const std::int64_t bytes = std::max(proven, lasting.total);
  throw Error(
      ErrorKind::infeasible,
      fmt::format("no plan fits: the stage of layers {} to {} needs {} on each of {} at least ({}), {} is "
                  "there: {} short",
                  first, end - 1, bytes_text(bytes), count_text(devices, "device"), lasting_text(lasting),
                  bytes_text(limit), bytes_text(bytes - limit)),
      std::string("more devices, more micro-batches, or a smaller batch") +
          (may_keep_less(options_.rematerialize) ? ", or --rematerialize auto" : ""));
}

/// Until here long steps are extrapolated, which may be off by more than schedules differ by.
void PlanSelection::simulate_all_of_it() {
  const int stages = entries_[*best_].stages;
  const double near_s = kNear * entries_[*best_].candidate.step_s;
  const Graph graph = model_.graph(entries_[*best_].plan.micro_batch_samples);
  std::vector<std::size_t> near;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].stages == stages && entries_[i].candidate.step_s <= near_s) near.push_back(i);
  run_tasks(static_cast<int>(near.size()), thread_count(options_.threads), [&](int i) {
    auto& [candidate, plan, _] = entries_[near[i]];
    predict(plan, graph, costs_);
    candidate.step_s = plan.prediction.step_s;
    candidate.busiest = plan.prediction.meshes[busiest_mesh(plan.prediction)];
  });
  best_ = *std::ranges::min_element(near, {}, [&](std::size_t i) { return entries_[i].candidate.step_s; });
  predict_sureness(entries_[*best_].plan, graph, costs_);
}

Plan PlanSelection::result() {
  if (!best_) refuse();
  simulate_all_of_it();
  Plan chosen = entries_[*best_].plan;
  chosen.prediction.lower_bound_s = std::min(chosen.prediction.lower_bound_s, chosen.prediction.step_s);
  std::vector<Candidate>& candidates = chosen.prediction.candidates;
  const int own = entries_[*best_].stages;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    candidates.push_back(entries_[i].candidate);
    candidates.back().verdict = verdict(i);
    if (entries_[i].stages != own) candidates.back().schedule = "";
    const Plan& plan = entries_[i].plan;
    candidates.back().method +=
        ": " + form(std::ssize(plan.stages), std::ssize(plan.meshes), plan.micro_batches, plan.schedule);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.step_s < b.step_s; });
  for (const Failure& failure : failures_) {
    if (failure.fits_otherwise && failure.stages != own)
      continue;  // the chosen plan's schedules are of interest
    candidates.push_back(failure.candidate);
    if (failure.stages != own) candidates.back().schedule = "";
  }
  const auto has_schedule = [](const Candidate& c) { return !c.schedule.empty(); };
  if (std::ranges::count_if(candidates, has_schedule) == 1)
    for (Candidate& candidate : candidates) candidate.schedule = "";
  return chosen;
}

}  // namespace alpa
