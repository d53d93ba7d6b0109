#include "libalpa/planner/search/plan_selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/planner/assemble.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/search/met_constraints.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/work_lower_bound.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

constexpr double kNear = 1.05;  ///< schedules that may turn out the fastest
constexpr double kGap = 5e-4;   ///< the estimate and the simulator differ by more

std::int64_t fullest_device(const Plan& plan) {
  std::int64_t most = 0;
  for (const MeshPrediction& mesh : plan.prediction.meshes) most = std::max(most, mesh.memory.total);
  return most;
}

std::string too_slow_text(double least_s) { return fmt::format("{} a step at least", seconds_text(least_s)); }

/// A schedule makes no difference to one stage.
std::string form(std::ptrdiff_t stages, int micro_batches, const std::string& schedule) {
  return count_text(stages, "stage") + ", " + count_text(micro_batches, "micro-batch") +
         (stages > 1 ? ", " + schedule : "");
}

DeviceMesh mesh_of(const StageRequest& request) { return {request.first_device, request.mesh}; }

/// Less a step does not take, whatever the schedule.
double slowest_s(const std::vector<StageSolution>& solutions) {
  return std::ranges::max(solutions, {}, &StageSolution::step_s).step_s;
}

void hold_micro_batches(std::vector<StageRequest>& requests, const std::string& schedule) {
  int most = 1;
  for (std::size_t s = 0; s < requests.size(); ++s) {
    StageRequest& request = requests[s];
    request.in_flight = most_in_flight(find_schedule(schedule).order(
        StageIndex(static_cast<int>(s)), static_cast<int>(requests.size()), request.micro_batches));
    most = std::max(most, request.in_flight);
  }
  for (StageRequest& request : requests) request.pipeline_in_flight = most;
}

/// Whether a solution is as good where more micro-batches are in flight, and the same wherever it lies.
bool serves(const StageSolution& solution, const StageRequest& solved, StageRequest wanted,
            std::int64_t limit) {
  const bool holds_more =
      wanted.in_flight >= solved.in_flight && wanted.pipeline_in_flight >= solved.pipeline_in_flight;
  const std::int64_t live = solution.resident_bytes + wanted.in_flight * solution.micro_batch_bytes;
  if (holds_more && live > limit - wanted.reserve_bytes) return false;
  wanted.first_device = solved.first_device;
  if (holds_more) {
    wanted.in_flight = solved.in_flight;
    wanted.pipeline_in_flight = solved.pipeline_in_flight;
  }
  return wanted == solved;
}

/// The same in all but what they are called.
bool same_plan(const Plan& a, const Plan& b) {
  return a.micro_batches == b.micro_batches && a.schedule == b.schedule && a.meshes == b.meshes &&
         a.stages == b.stages && a.node_strategy == b.node_strategy && a.value_layout == b.value_layout &&
         a.segment_layouts == b.segment_layouts && a.transfers == b.transfers && a.inputs == b.inputs;
}

/// On the step of every plan with these stages, of which one takes `step_s`: that of each is bounded by its
/// solver, and of what a plan that is better leaves to its update, what is not left to its micro-batches.
double least_step_s(const PricedGraph& priced, const Proposal& proposal, const std::string& schedule,
                    double step_s) {
  std::vector<StageFloor> floors = stage_floors(priced.planning, priced.book, proposal.requests);
  const int micro_batches = proposal.requests.front().micro_batches;
  for (std::size_t s = 0; s < floors.size(); ++s) {
    StageFloor& floor = floors[s];
    floor.step_s = std::max(floor.step_s, proposal.solutions[s].lower_bound_s);
    const double most_update = std::max(0.0, step_s - micro_batches * floor.micro_batch_s);
    floor.micro_batch_s = std::max(floor.micro_batch_s, (floor.step_s - most_update) / micro_batches);
  }
  const PipelineForm form = form_of(schedule, micro_batches, static_cast<int>(floors.size()));
  return std::min(step_s, least_pipeline_s(floors, form));
}

}  // namespace

/// A proposal on its way to a plan.
struct PlanSelection::Attempt {
  Proposal proposal;
  std::vector<StageSolution> starts;  ///< [stage] or empty
  std::vector<StageRequest> asked;    ///< [stage] what `starts` are of
  std::vector<bool> is_open;          ///< [stage] to be solved
  std::vector<char> out_of_time;      ///< [stage]
  double most_s = infinity;           ///< as of Patience::stage_s
  bool is_first = true;

  std::size_t stages() const { return proposal.requests.size(); }
  const StageSolution* start(std::size_t stage) const {
    return stage < starts.size() ? &starts[stage] : nullptr;
  }

  /// As far as is known.
  std::size_t slowest() const {
    std::size_t slowest = 0;
    for (std::size_t s = 1; s < starts.size(); ++s)
      if (starts[s].step_s > starts[slowest].step_s) slowest = s;
    return slowest;
  }
};

/// The slowest first: what is no slower need not be at its best.
void PlanSelection::solve_open(const PricedGraph& priced, Attempt& attempt, int threads) const {
  const std::size_t slowest = attempt.slowest();
  std::vector<std::size_t> others;
  for (std::size_t s = 0; s < attempt.stages(); ++s) {
    if (!attempt.is_open[s]) continue;
    const StageSolution* start = attempt.start(s);
    const StageRequest& request = attempt.proposal.requests[s];
    const bool is_priced_so = &priced.book.known(mesh_of(request)) == &priced.book.known(request.mesh);
    if (attempt.is_first && start && start->is_solved && is_priced_so &&
        serves(*start, attempt.asked[s], request, costs_.cluster().memory_bytes))
      attempt.proposal.solutions[s] = *start;
    else if (s != slowest)
      others.push_back(s);
    else
      solve(priced, attempt, s, -infinity);
  }
  const StageSolution& known = attempt.proposal.solutions[slowest];
  if (!known.feasible) return;
  run_tasks(static_cast<int>(others.size()), threads,
            [&](int i) { solve(priced, attempt, others[i], known.step_s); });
}

/// With rematerialisation where memory does not suffice and it may be had.
void PlanSelection::solve(const PricedGraph& priced, Attempt& attempt, std::size_t stage,
                          double enough) const {
  StageRequest& request = attempt.proposal.requests[stage];
  StageSolution& solution = attempt.proposal.solutions[stage];
  const StageSolution* start = attempt.start(stage);
  SelectionOptions options;
  options.gap = kGap;
  options.enough = enough;
  options.gap_of_enough = kGap * request.micro_batches / static_cast<double>(attempt.stages());
  options.cutoff = attempt.most_s;
  options.effort = effort_.work;
  options.most_cbc_cells = effort_.most_cbc_cells;
  // Without any plan yet, or a start to fall back on, there has to be time for one.
  const double least_s = best_ || start ? 0 : 1;
  options.time_limit_s = std::clamp(clock_.left_s(), least_s, options.time_limit_s);
  options.stop = clock_.stop();
  options.cache = options_.cache;
  const MeshCosts& mesh_costs = priced.book.known(mesh_of(request));
  solution = solve_stage(priced.planning, request, mesh_costs, options, start);
  attempt.out_of_time[stage] |= solution.hit_time_limit;
  const int layers = request.end_layer - request.first_layer;
  while (!solution.feasible && solution.least_memory > 0 && request.recomputed_layers < layers &&
         options_.rematerialize == Rematerialize::automatic) {
    const bool is_near = start && request.recomputed_layers > 0;  // the search found about as much to suffice
    request.recomputed_layers = is_near ? std::min(layers, request.recomputed_layers * 5 / 4 + 1) : layers;
    solution = solve_stage(priced.planning, request, mesh_costs, options);
    attempt.out_of_time[stage] |= solution.hit_time_limit;
  }
}

Plan PlanSelection::plan_of(const PricedGraph& priced, const Proposal& proposal, const std::string& method,
                            const std::string& schedule) const {
  Plan plan = assemble(priced.planning, proposal.requests, proposal.solutions, schedule, costs_.cluster());
  plan.model_name = model_.name;
  plan.model_toml = model_.toml;
  plan.method = method;
  try {
    check_plan(plan, priced.graph);
    require_met(options_.constraints, plan, priced.graph);
  } catch (const Error& error) {  // not the user's input: ours
    throw Error(ErrorKind::run_time, fmt::format("{} was put together wrongly: {}", method, error.happened()),
                "another --method; and report the model file, this is a fault of alpa-plan");
  }
  predict_steady(plan, priced.graph, costs_);
  return plan;
}

PlanSelection::Trial PlanSelection::try_out(const PricedGraph& priced, Proposal proposal,
                                            const std::string& method, const std::string& schedule,
                                            double most_s, int threads) const {
  return tried(priced, std::move(proposal), method, schedule, {most_s, most_s}, threads);
}

PlanSelection::Trial PlanSelection::tried(const PricedGraph& priced, Proposal proposal,
                                          const std::string& method, const std::string& schedule,
                                          Patience patience, int threads) const {
  Trial trial;
  trial.method = method;
  trial.schedule = schedule;
  Attempt attempt;
  attempt.asked = proposal.requests;
  attempt.starts = std::exchange(proposal.solutions, std::vector<StageSolution>(proposal.requests.size()));
  attempt.is_open.assign(proposal.requests.size(), true);
  attempt.out_of_time.assign(proposal.requests.size(), 0);
  attempt.proposal = std::move(proposal);
  attempt.most_s = patience.stage_s;
  std::vector<StageRequest>& requests = attempt.proposal.requests;
  hold_micro_batches(requests, schedule);
  place_stages(requests, costs_.cluster());
  const auto limit = [&](std::size_t s) { return costs_.on(mesh_of(requests[s])).cluster().memory_bytes; };
  for (StageRequest& request : requests)
    if (options_.rematerialize == Rematerialize::always)
      request.recomputed_layers = request.end_layer - request.first_layer;
  // Once more where packing takes more than what is live, and once rematerialised.
  for (int left = patience.packings; left > 0; --left, attempt.is_first = false) {
    solve_open(priced, attempt, threads);
    trial.out_of_time =
        trial.out_of_time || std::ranges::any_of(attempt.out_of_time, [](char hit) { return hit != 0; });
    const std::vector<StageSolution>& solutions = attempt.proposal.solutions;
    for (std::size_t s = 0; s < solutions.size(); ++s) {
      const StageSolution& solution = solutions[s];
      if (solution.feasible || (solution.why_not.empty() && solution.least_memory == 0)) continue;
      if (solution.least_memory > 0)
        trial.shortfall = {requests[s].first_layer, requests[s].end_layer, solution.least_memory, limit(s)};
      else
        trial.failure = solution.lower_bound_s >= patience.stage_s && solution.lower_bound_s < infinity
                            ? too_slow_text(solution.lower_bound_s)
                            : fmt::format("stage {}: {}", s, solution.why_not);
      return trial;
    }
    if (const double step_s = pipeline_seconds(solutions, requests.front().micro_batches);
        step_s >= patience.pipeline_s) {
      trial.failure = fmt::format("{} a step by its estimate, and no closer look", seconds_text(step_s));
      return trial;
    }
    Plan plan = plan_of(priced, attempt.proposal, method, schedule);
    std::int64_t most_over = 0;
    std::size_t fullest = 0;
    for (std::size_t s = 0; s < requests.size(); ++s) {
      const std::int64_t over = plan.prediction.meshes[MeshIndex(s)].memory.total - limit(s);
      attempt.is_open[s] = over > 0;
      if (over <= 0) continue;
      if (over > most_over) fullest = s;
      most_over = std::max(most_over, over);
      // Another packing may lose more; where it did, as much as this one lost.
      const StageSolution& solution = solutions[s];
      const std::int64_t live = solution.resident_bytes + requests[s].in_flight * solution.micro_batch_bytes;
      std::int64_t& reserve = requests[s].reserve_bytes;
      reserve = std::max(reserve + over + over / 4, attempt.is_first ? 0 : over + limit(s) - live);
    }
    if (most_over == 0) {
      trial.proposal = std::move(attempt.proposal);
      trial.proposal.estimate_s = pipeline_seconds(trial.proposal.solutions, plan.micro_batches);
      plan.prediction.lower_bound_s = least_step_s(priced, trial.proposal, schedule, plan.prediction.step_s);
      plan.prediction.bound_covers =
          fmt::format("these stages on these meshes{}, split in any way that the method allows",
                      requests.size() > 1 ? " under schedule " + schedule : "");
      trial.plan = std::move(plan);
      return trial;
    }
    trial.failure = fmt::format("its program takes {} of the {} there are, however it was split",
                                bytes_text(limit(fullest) + most_over), bytes_text(limit(fullest)));
  }
  return trial;
}

Proposal PlanSelection::enter(const PricedGraph& priced, Trial trial, const OtherSchedules& others,
                              int threads) {
  ++stages_;
  const bool is_new = note(trial);
  const Proposal& proposal = trial.proposal;
  if (!is_new || slowest_s(proposal.solutions) >= best_step_s()) return std::move(trial.proposal);
  std::vector<std::string> schedules = schedules_of(others.asked, static_cast<int>(proposal.requests.size()),
                                                    proposal.requests.front().micro_batches);
  std::erase(schedules, trial.schedule);
  const bool solves_again = others.solves_again && entries_.back().candidate.step_s == best_step_s();
  const int count = static_cast<int>(schedules.size());
  std::vector<Trial> trials(schedules.size());
  run_tasks(count, threads, [&](int i) {
    trials[i] = tried_otherwise(priced, proposal, trial.method, schedules[i], solves_again,
                                std::max(1, threads / count));
  });
  for (Trial& other : trials) note(other);
  return std::move(trial.proposal);
}

/// Of stages that are solved.
PlanSelection::Trial PlanSelection::tried_otherwise(const PricedGraph& priced, const Proposal& proposal,
                                                    const std::string& method, const std::string& schedule,
                                                    bool solves_again, int threads) const {
  std::vector<StageRequest> requests = proposal.requests;
  hold_micro_batches(requests, schedule);
  Trial trial;
  trial.method = method;
  trial.schedule = schedule;
  for (std::size_t s = 0; s < requests.size() && !solves_again && trial.failure.empty(); ++s)
    if (!serves(proposal.solutions[s], proposal.requests[s], requests[s],
                costs_.on(mesh_of(requests[s])).cluster().memory_bytes))
      trial.failure = fmt::format("stage {} has no room for {} in flight, split as it is", s,
                                  count_text(requests[s].in_flight, "micro-batch"));
  if (trial.failure.empty())
    trial = tried(priced, proposal, method, schedule,
                  {.stage_s = best_step_s(), .packings = solves_again ? Patience{}.packings : 1}, threads);
  if (!trial.plan)
    trial.method += ": " + form(std::ssize(requests), requests.front().micro_batches, schedule);
  trial.fits_otherwise = true;
  return trial;
}

/// Whether it is a plan that was not known.
bool PlanSelection::note(Trial& trial) {
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
  const std::int64_t limit = least_shortfall_.there;
  throw Error(
      ErrorKind::infeasible,
      fmt::format(
          "no plan fits: the stage of layers {} to {} needs {} per device at least, {} is there: {} short",
          least_shortfall_.first_layer, least_shortfall_.end_layer - 1, bytes_text(least_shortfall_.bytes),
          bytes_text(limit), bytes_text(least_shortfall_.bytes - limit)),
      std::string("more devices, more micro-batches, or a smaller batch") +
          (options_.rematerialize == Rematerialize::never ? ", or --rematerialize auto" : ""));
}

/// Until here long steps are extrapolated, which may be off by more than schedules differ by.
void PlanSelection::simulate_all_of_it() {
  const int stages = entries_[*best_].stages;
  const double near_s = kNear * entries_[*best_].candidate.step_s;
  const Graph graph = model_.graph(entries_[*best_].plan.micro_batch_samples);
  std::vector<std::size_t> near;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].stages == stages && entries_[i].candidate.step_s <= near_s) near.push_back(i);
  for (const std::size_t i : near) {
    auto& [candidate, plan, _] = entries_[i];
    predict(plan, graph, costs_);
    candidate.step_s = plan.prediction.step_s;
    candidate.busiest = plan.prediction.meshes[busiest_mesh(plan.prediction)];
  }
  best_ = *std::ranges::min_element(near, {}, [&](std::size_t i) { return entries_[i].candidate.step_s; });
  Plan& chosen = entries_[*best_].plan;
  chosen.prediction.step_error_s = predicted_error_s(chosen, graph, costs_, chosen.prediction.step_s);
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
    candidates.back().method += ": " + form(std::ssize(plan.stages), plan.micro_batches, plan.schedule);
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
