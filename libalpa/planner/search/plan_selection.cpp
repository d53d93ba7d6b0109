#include "libalpa/planner/search/plan_selection.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/planner/assemble.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/search/work_lower_bound.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

std::int64_t fullest_device(const Plan& plan) {
  std::int64_t most = 0;
  for (const MeshPrediction& mesh : plan.prediction.meshes) most = std::max(most, mesh.memory.total);
  return most;
}

std::string form(const Plan& plan) {
  return count_text(std::ssize(plan.stages), "stage") + ", " + count_text(plan.micro_batches, "micro-batch");
}

/// The same wherever it lies.
bool is_same_stage(StageRequest a, const StageRequest& b) {
  a.first_device = b.first_device;
  return a == b;
}

/// The same in all but what they are called.
bool same_plan(const Plan& a, const Plan& b) {
  return a.micro_batches == b.micro_batches && a.schedule == b.schedule && a.meshes == b.meshes &&
         a.stages == b.stages && a.node_strategy == b.node_strategy && a.value_layout == b.value_layout &&
         a.segment_layouts == b.segment_layouts && a.transfers == b.transfers && a.inputs == b.inputs;
}

/// A bound on the estimate of every plan with these stages: of one that is better, the step of each stage is
/// bounded by its solver, and what the step leaves to the update is bounded by what the pipeline leaves to
/// the step.
double least_pipeline_s(PricedGraph& priced, const Proposal& proposal) {
  std::vector<double> least;  // seconds of a micro-batch
  double sum = 0;
  for (const StageRequest& r : proposal.requests) {
    least.push_back(0);
    for (int layer = r.first_layer; layer < r.end_layer; ++layer)
      least.back() += layer_lower_bound(priced.planning, layer, priced.book.on(r.mesh)).micro_batch_s;
    sum += least.back();
  }
  std::vector<StageSeconds> bounds;
  for (std::size_t s = 0; s < least.size(); ++s) {
    const int micro_batches = proposal.requests[s].micro_batches;
    const double update = std::max(0.0, proposal.estimate_s - sum - (micro_batches - 1) * least[s]);
    const double step = proposal.solutions[s].lower_bound_s;
    const double first = std::max(least[s], (step - update) / micro_batches);
    bounds.push_back({first, step - first});
  }
  return std::min(proposal.estimate_s, pipeline_seconds(bounds));
}

}  // namespace

bool PlanSelection::solve(PricedGraph& priced, StageRequest& request, StageSolution& solution,
                          const StageSolution* start) {
  SelectionOptions options;
  options.gap = 5e-4;  // the estimate and the simulator differ by more
  options.effort = effort_.work;
  options.most_cbc_cells = effort_.most_cbc_cells;
  // Without any plan yet, or a start to fall back on, there has to be time for one.
  const double least_s = best_ || start ? 0 : 1;
  options.time_limit_s = std::clamp(clock_.left_s(), least_s, options.time_limit_s);
  options.stop = clock_.stop();
  const MeshCosts& mesh_costs = priced.book.on(request.mesh);
  solution = solve_stage(priced.planning, request, mesh_costs, options, start);
  out_of_time_ |= solution.hit_time_limit;
  if (solution.feasible || solution.least_memory == 0 || request.rematerialize ||
      options_.rematerialize != Rematerialize::automatic)
    return solution.feasible;
  request.rematerialize = true;
  solution = solve_stage(priced.planning, request, mesh_costs, options);
  out_of_time_ |= solution.hit_time_limit;
  return solution.feasible;
}

Plan PlanSelection::plan_of(PricedGraph& priced, const Proposal& proposal, const std::string& method,
                            const std::string& schedule) const {
  Plan plan = assemble(priced.planning, proposal.requests, proposal.solutions, schedule, costs_.cluster());
  plan.model_name = model_.name;
  plan.model_toml = model_.toml;
  plan.method = method;
  try {
    check_plan(plan, priced.graph);
  } catch (const Error& error) {  // not the user's input: ours
    throw Error(ErrorKind::run_time, fmt::format("{} was put together wrongly: {}", method, error.happened()),
                "another --method; and report the model file, this is a fault of alpa-plan");
  }
  predict_steady(plan, priced.graph, costs_);
  return plan;
}

Proposal PlanSelection::evaluate(PricedGraph& priced, Proposal proposal, const std::string& method,
                                 const std::string& schedule) {
  const int stages = static_cast<int>(proposal.requests.size());
  const std::int64_t limit = costs_.cluster().memory_bytes;
  const std::vector<StageSolution> starts = proposal.solutions;
  proposal.solutions.assign(proposal.requests.size(), {});
  const std::vector<StageRequest> asked = proposal.requests;
  std::vector<bool> unsolved(proposal.requests.size(), true);
  int most_in_flight = 1;
  for (int s = 0; s < stages; ++s) {
    StageRequest& request = proposal.requests[s];
    request.in_flight =
        alpa::most_in_flight(find_schedule(schedule).order(StageIndex(s), stages, request.micro_batches));
    most_in_flight = std::max(most_in_flight, request.in_flight);
  }
  place_stages(proposal.requests, costs_.cluster());
  for (StageRequest& request : proposal.requests) {
    request.pipeline_in_flight = most_in_flight;
    if (options_.rematerialize == Rematerialize::always) request.rematerialize = true;
  }
  constexpr int attempts =
      3;  // once more where packing takes more than what is live, and once rematerialised
  for (int attempt = 0; attempt < attempts; ++attempt) {
    for (int s = 0; s < stages; ++s) {
      const std::size_t i = static_cast<std::size_t>(s);
      if (!unsolved[i]) continue;
      StageRequest& request = proposal.requests[i];
      const StageSolution* start = i < starts.size() ? &starts[i] : nullptr;
      if (attempt == 0 && start && start->is_solved && is_same_stage(request, asked[i])) {
        proposal.solutions[i] = *start;
        continue;
      }
      if (!solve(priced, request, proposal.solutions[i], start)) {
        const StageSolution& failed = proposal.solutions[i];
        if (failed.least_memory > 0)
          note_shortfall(method, request.first_layer, request.end_layer, failed.least_memory);
        else
          note_failure(method, fmt::format("stage {}: {}", s, failed.why_not));
        return {};
      }
    }
    Plan plan = plan_of(priced, proposal, method, schedule);
    bool fits = true;
    for (std::size_t i = 0; i < proposal.requests.size(); ++i) {
      const std::int64_t over = plan.prediction.meshes[MeshIndex(i)].memory.total - limit;
      unsolved[i] = over > 0;
      if (over > 0) proposal.requests[i].reserve_bytes += over + over / 4;  // another packing may lose more
      fits = fits && over <= 0;
    }
    if (fits) {
      proposal.estimate_s = pipeline_seconds(proposal.solutions, plan.micro_batches);
      plan.prediction.lower_bound_s = least_pipeline_s(priced, proposal);
      plan.prediction.bound_covers = "these stages on these meshes, split in any way that the method allows";
      keep(std::move(plan), proposal.estimate_s, method);
      return proposal;
    }
    if (attempt + 1 == attempts)
      note_failure(method, fmt::format("its program takes {} of the {} there are, however it was split",
                                       bytes_text(fullest_device(plan)), bytes_text(limit)));
  }
  return {};
}

void PlanSelection::keep(Plan plan, double estimate_s, const std::string& method) {
  plan.prediction.estimate_s = estimate_s;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (same_plan(entries_[i].plan, plan)) {
      entries_[i].candidate.method += " = " + method;
      compare(i, estimate_s);
      return;
    }
  const Candidate candidate{method, plan.prediction.step_s, fullest_device(plan), "",
                            plan.prediction.meshes[busiest_mesh(plan.prediction)]};
  entries_.push_back({candidate, std::move(plan)});
  compare(entries_.size() - 1, estimate_s);
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

void PlanSelection::note_failure(const std::string& method, const std::string& why) {
  failures_.push_back({method, 0, 0, why});
}

void PlanSelection::note_shortfall(const std::string& method, int first, int end, std::int64_t least) {
  failures_.push_back(
      {method, 0, least, fmt::format("layers {} to {} need {} at least", first, end - 1, bytes_text(least))});
  if (least_memory_ > 0 && least >= least_memory_) return;
  least_memory_ = least;
  least_first_ = first;
  least_end_ = end;
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
  if (least_memory_ == 0)
    throw Error(ErrorKind::infeasible,
                failures_.empty() ? fmt::format("method '{}' has no plan for this model on {} devices",
                                                options_.method, devices_)
                                  : fmt::format("no plan: {}", failures_.front().verdict),
                "alpa-plan --method auto, or other --devices and --micro-batches");
  const std::int64_t limit = costs_.cluster().memory_bytes;
  throw Error(
      ErrorKind::infeasible,
      fmt::format(
          "no plan fits: the stage of layers {} to {} needs {} per device at least, {} is there: {} short",
          least_first_, least_end_ - 1, bytes_text(least_memory_), bytes_text(limit),
          bytes_text(least_memory_ - limit)),
      std::string("more devices, more micro-batches, or a smaller batch") +
          (options_.rematerialize == Rematerialize::never ? ", or --rematerialize auto" : ""));
}

Plan PlanSelection::result() {
  if (!best_) refuse();
  Plan chosen = entries_[*best_].plan;
  predict(chosen, model_.graph(chosen.micro_batch_samples), costs_);
  entries_[*best_].candidate.step_s = chosen.prediction.step_s;
  std::vector<Candidate>& candidates = chosen.prediction.candidates;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    candidates.push_back(entries_[i].candidate);
    candidates.back().verdict = verdict(i);
    candidates.back().method += ": " + form(entries_[i].plan);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.step_s < b.step_s; });
  candidates.insert(candidates.end(), failures_.begin(), failures_.end());
  return chosen;
}

}  // namespace alpa
