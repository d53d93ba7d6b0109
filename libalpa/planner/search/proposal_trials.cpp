#include "libalpa/planner/search/proposal_trials.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/plan/update_timing.h"
#include "libalpa/planner/assemble.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/returned_states.h"
#include "libalpa/planner/search/mesh_memory.h"
#include "libalpa/planner/search/met_constraints.h"
#include "libalpa/planner/search/pipeline_bound.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/work_lower_bound.h"
#include "libalpa/planner/stage_places.h"
#include "libalpa/planner/transfer_ways.h"
#include "libalpa/program/program.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

constexpr int kSharings = 3;  ///< of the memory of meshes among their stages

constexpr double kGap = 5e-4;  ///< the estimate and the simulator differ by more

std::string too_slow_text(double least_s) { return fmt::format("{} a step at least", seconds_text(least_s)); }

DeviceMesh mesh_of(const StageRequest& request) { return {request.first_device, request.mesh}; }

/// Puts the stages on their meshes, with as many micro-batches in flight as the schedule has there.
void lay_under(const std::string& schedule, Proposal& proposal, const Cluster& cluster) {
  std::vector<StageRequest>& requests = proposal.requests;
  proposal.schedule = schedule;
  const std::vector<int> meshes =
      meshes_of_stages(find_schedule(schedule), static_cast<int>(requests.size()), proposal.stages_per_mesh);
  const std::vector<int> held =
      held_by_stages(find_schedule(schedule), meshes, requests.front().micro_batches);
  for (std::size_t s = 0; s < requests.size(); ++s) {
    requests[s].in_flight = held[s];
    requests[s].pipeline_in_flight = std::ranges::max(held);
  }
  place_stages(requests, cluster, meshes);
}

/// Whether a solution is as good where other micro-batches are in flight, and the same wherever it lies.
/// Where stages share meshes, neighbours and what the others of a mesh hold may be others too.
bool serves(const StageSolution& solution, const StageRequest& solved, StageRequest wanted,
            std::int64_t limit, bool shares_mesh) {
  const bool holds_more =
      wanted.in_flight >= solved.in_flight && wanted.pipeline_in_flight >= solved.pipeline_in_flight;
  if ((holds_more || shares_mesh) && live_bytes(wanted, solution) > limit - wanted.reserve_bytes)
    return false;
  wanted.first_device = solved.first_device;
  if (holds_more || shares_mesh) {
    wanted.in_flight = solved.in_flight;
    wanted.pipeline_in_flight = solved.pipeline_in_flight;
  }
  if (shares_mesh) {
    wanted.sides = solved.sides;
    wanted.reserve_bytes = solved.reserve_bytes;
  }
  return wanted == solved;
}

/// On the step of every plan with these stages, of which this is one: that of each is bounded by its solver,
/// and of what a plan that is better leaves to its update, what is not left to its micro-batches.
double least_step_s(const PricedGraph& priced, const Proposal& proposal, const Plan& plan, bool in_turn) {
  const double step_s = plan.prediction.step_s;
  std::vector<StageFloor> floors = stage_floors(priced.planning, priced.book, proposal.requests);
  if (plan.updates == UpdateOrder::next_forward) return std::min(step_s, least_overlapping_s(floors));
  // What a solver says of stages by themselves has messages that there are not within a mesh, or not in turn.
  if (proposal.stages_per_mesh > 1 || !in_turn)
    return std::min(step_s, least_shared_s(floors, plan.schedule, proposal.stages_per_mesh));
  const int micro_batches = proposal.requests.front().micro_batches;
  for (std::size_t s = 0; s < floors.size(); ++s) {
    StageFloor& floor = floors[s];
    floor.step_s = std::max(floor.step_s, proposal.solutions[s].lower_bound_s);
    const double most_update = std::max(0.0, step_s - micro_batches * floor.micro_batch_s);
    floor.micro_batch_s = std::max(floor.micro_batch_s, (floor.step_s - most_update) / micro_batches);
  }
  const PipelineForm form = form_of(plan.schedule, micro_batches, static_cast<int>(floors.size()));
  return std::min(step_s, least_pipeline_s(floors, form));
}

}  // namespace

/// A proposal on its way to a plan.
struct ProposalTrials::Attempt {
  Proposal proposal;
  std::vector<StageSolution> starts;  ///< [stage] or empty
  std::vector<StageRequest> asked;    ///< [stage] what `starts` are of
  std::vector<bool> is_open;          ///< [stage] to be solved
  std::vector<char> out_of_time;      ///< [stage]
  Patience patience;
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
void ProposalTrials::solve_open(const PricedGraph& priced, Attempt& attempt, int threads) const {
  const std::size_t slowest = attempt.slowest();
  std::vector<std::size_t> others;
  for (std::size_t s = 0; s < attempt.stages(); ++s) {
    if (!attempt.is_open[s]) continue;
    const StageSolution* start = attempt.start(s);
    const StageRequest& request = attempt.proposal.requests[s];
    const bool is_priced_so = &priced.book.known(mesh_of(request)) == &priced.book.known(request.mesh);
    if (attempt.is_first && start && start->is_solved && is_priced_so &&
        serves(*start, attempt.asked[s], request, costs_.cluster().memory_bytes,
               attempt.proposal.stages_per_mesh > 1))
      attempt.proposal.solutions[s] = *start;
    else if (s != slowest)
      others.push_back(s);
    else
      solve(priced, attempt, s, -infinity);
  }
  const StageSolution& known = attempt.proposal.solutions[slowest];
  if (!known.feasible || known.step_s >= attempt.patience.stage_s) return;
  run_tasks(static_cast<int>(others.size()), threads,
            [&](int i) { solve(priced, attempt, others[i], known.step_s); });
}

/// With rematerialisation where memory does not suffice and it may be had.
void ProposalTrials::solve(const PricedGraph& priced, Attempt& attempt, std::size_t stage,
                           double enough) const {
  StageRequest& request = attempt.proposal.requests[stage];
  StageSolution& solution = attempt.proposal.solutions[stage];
  const StageSolution* start = attempt.start(stage);
  SelectionOptions options;
  options.gap = kGap;
  // Where stages share meshes, each of them counts in full for every micro-batch.
  options.enough = attempt.proposal.stages_per_mesh > 1 ? -infinity : enough;
  options.gap_of_enough = kGap * request.micro_batches / static_cast<double>(attempt.stages());
  options.cutoff = attempt.patience.stage_s;
  options.effort = effort_.effort;
  options.most_cbc_cells = effort_.most_cbc_cells;
  // Without any plan yet, or a start to fall back on, there has to be time for one.
  const double least_s = attempt.patience.has_plan || start ? 0 : 1;
  options.time_limit_s = std::clamp(clock_.left_s(), least_s, options.time_limit_s);
  options.stop = clock_.stop();
  options.cache = options_.cache;
  const MeshCosts& mesh_costs = priced.book.known(mesh_of(request));
  solution = solve_stage(priced.planning, request, mesh_costs, options, start);
  if (start && solution.feasible && !solution.hit_time_limit && solution.step_s >= options.cutoff &&
      solution.lower_bound_s < options.cutoff) {
    options.effort *= kHarder;  // memory is so short that what was found first is far from its bound
    options.time_limit_s = std::clamp(clock_.left_s(), 0.0, options.time_limit_s);
    StageSolution other = solve_stage(priced.planning, request, mesh_costs, options, start);
    attempt.out_of_time[stage] |= other.hit_time_limit;
    if (other.feasible && other.step_s < solution.step_s) solution = std::move(other);
  }
  attempt.out_of_time[stage] |= solution.hit_time_limit;
  const int layers = request.end_layer - request.first_layer, first = request.recomputed_layers;
  while (!solution.feasible && solution.least_memory > 0 && request.recomputed_layers < layers &&
         may_spare_more(options_)) {
    if (request.recomputed_layers == 0 && offloads_activations(options_))
      request.recompute_form = RecomputeForm::offload;
    // The search found about as much to suffice as a start has; few may where it has none.
    const int more =
        first > 0 ? request.recomputed_layers * 5 / 4 + 1 : std::max(1, 2 * request.recomputed_layers);
    request.recomputed_layers = start ? std::min(layers, more) : layers;
    solution = solve_stage(priced.planning, request, mesh_costs, options);
    attempt.out_of_time[stage] |= solution.hit_time_limit;
  }
}

/// Nothing: a value that stages of one mesh share, each of which was solved by itself, is then against a
/// constraint.
std::optional<Plan> ProposalTrials::plan_of(const PricedGraph& priced, const Proposal& proposal,
                                            const std::string& method, const std::string& schedule,
                                            const Patience& patience) const {
  Plan plan = assemble(priced.planning, proposal.requests, proposal.solutions, schedule, costs_.cluster());
  plan.model_name = model_.name;
  plan.model_toml = model_.toml;
  plan.method = method;
  plan.overlap = priced.planning.overlap;
  plan.updates = order_in_effect(priced.planning.uses, plan, priced.planning.updates);
  try {
    check_plan(plan, priced.graph);
    if (proposal.stages_per_mesh == 1) require_met(options_.constraints, plan, priced.graph);
  } catch (const Error& error) {  // not the user's input: ours
    throw Error(ErrorKind::run_time, fmt::format("{} was put together wrongly: {}", method, error.happened()),
                "another --method; and report the model file, this is a fault of alpa-plan");
  }
  if (!unmet_constraints(options_.constraints, plan, priced.graph).empty()) return std::nullopt;
  const StageTransfers transfers = proposal.transfers.empty()
                                       ? StageTransfers(plan.stages.size(), transfer_strategy(options_))
                                       : proposal.transfers;
  choose_transfer_ways(plan, priced.graph, costs_, transfers);
  const SumsForBuckets sums(plan, priced.planning.uses);
  set_buckets(plan, sums);
  predict_steady(plan, priced.graph, costs_);
  take_what_pays(plan, priced, transfers, sums, patience);
  return plan;
}

ProposalTrial ProposalTrials::try_out(const PricedGraph& priced, Proposal proposal, const std::string& method,
                                      const std::string& schedule, const Patience& patience,
                                      int threads) const {
  ProposalTrial trial;
  trial.method = method;
  trial.schedule = schedule;
  Attempt attempt;
  attempt.asked = proposal.requests;
  attempt.starts = std::exchange(proposal.solutions, std::vector<StageSolution>(proposal.requests.size()));
  attempt.is_open.assign(proposal.requests.size(), true);
  attempt.out_of_time.assign(proposal.requests.size(), 0);
  attempt.proposal = std::move(proposal);
  attempt.patience = patience;
  std::vector<StageRequest>& requests = attempt.proposal.requests;
  lay_under(schedule, attempt.proposal, costs_.cluster());
  const std::vector<std::vector<std::size_t>> meshes = stages_on_meshes(requests);
  const auto limit = [&](std::size_t s) { return costs_.on(mesh_of(requests[s])).cluster().memory_bytes; };
  const bool is_selective = options_.rematerialize == Rematerialize::selective;
  for (StageRequest& request : requests) {
    if (is_selective || options_.rematerialize == Rematerialize::always)
      request.recomputed_layers = request.end_layer - request.first_layer;
    if (is_selective) request.recompute_form = RecomputeForm::selective;
  }
  // Once more where packing takes more than what is live, and once rematerialised.
  const int to_share = attempt.proposal.stages_per_mesh > 1 && patience.packings > 1 ? kSharings : 0;
  for (int left = patience.packings + to_share; left > 0; --left, attempt.is_first = false) {
    solve_open(priced, attempt, threads);
    trial.out_of_time =
        trial.out_of_time || std::ranges::any_of(attempt.out_of_time, [](char hit) { return hit != 0; });
    const std::vector<StageSolution>& solutions = attempt.proposal.solutions;
    const auto memory = [&](std::size_t m) {
      return MeshMemory{requests, solutions, meshes[m], limit(meshes[m].front())};
    };
    bool has_room = false, has_none = false;
    for (std::size_t m = 0; m < meshes.size() && left > 1; ++m)
      if (memory(m).is_short()) (memory(m).make_room() ? has_room : has_none) = true;
    if (has_room && !has_none) {
      for (std::size_t s = 0; s < solutions.size(); ++s) attempt.is_open[s] = !solutions[s].feasible;
      continue;
    }
    for (std::size_t s = 0; s < solutions.size(); ++s) {
      const StageSolution& solution = solutions[s];
      if (solution.feasible && solution.step_s >= patience.stage_s) {
        trial.is_too_slow = true;
        trial.failure = fmt::format("{} a step as it was split, and was not looked at more closely",
                                    seconds_text(solution.step_s));
        return trial;
      }
      if (solution.feasible || (solution.why_not.empty() && solution.least_memory == 0)) continue;
      trial.is_too_slow = solution.least_memory == 0 && solution.lower_bound_s >= patience.stage_s &&
                          solution.lower_bound_s < infinity;
      if (solution.least_memory > 0)
        trial.shortfall = {requests[s].first_layer, requests[s].end_layer, device_count(requests[s].mesh),
                           solution.least_memory, limit(s)};
      else
        trial.failure = trial.is_too_slow ? too_slow_text(solution.lower_bound_s)
                                          : fmt::format("stage {}: {}", s, solution.why_not);
      return trial;
    }
    if (const double step_s = pipeline_seconds(attempt.proposal); step_s >= patience.pipeline_s) {
      trial.is_too_slow = true;
      trial.failure =
          fmt::format("{} a step by its estimate, and was not looked at more closely", seconds_text(step_s));
      return trial;
    }
    std::optional<Plan> plan = plan_of(priced, attempt.proposal, method, schedule, patience);
    if (!plan) {
      trial.failure = "what stages of one mesh share violates a constraint";
      return trial;
    }
    if (const std::int64_t lacking = host_shortfall(*plan); lacking > 0) {
      trial.failure = fmt::format("a node's host lacks {} for what rests there", bytes_text(lacking));
      return trial;
    }
    std::int64_t most_over = 0;
    std::size_t fullest = 0;
    for (std::size_t m = 0; m < meshes.size(); ++m) {
      const std::size_t s = meshes[m].front();
      const std::int64_t over = plan->prediction.meshes[MeshIndex(m)].memory.total - limit(s);
      for (const std::size_t each : meshes[m]) attempt.is_open[each] = over > 0;
      if (over <= 0) continue;
      if (over > most_over) fullest = s;
      most_over = std::max(most_over, over);
      memory(m).leave(over, attempt.is_first);
    }
    if (most_over == 0) {
      trial.proposal = std::move(attempt.proposal);
      trial.proposal.estimate_s = pipeline_seconds(trial.proposal);
      // Where it has what the stages were solved with, and these know what all of it takes.
      if (plan->on_host == priced.planning.on_host && !plan->has_owners() &&
          !std::ranges::any_of(plan->stages, &StagePlan::offloads))
        plan->prediction.lower_bound_s =
            least_step_s(priced, trial.proposal, *plan, overlap(options_) == Overlap::none);
      plan->prediction.bound_covers = fmt::format("{}{}, split in any way that the method allows", kOwnStages,
                                                  requests.size() > 1 ? " under schedule " + schedule : "");
      trial.plan = std::move(plan);
      return trial;
    }
    trial.failure = fmt::format("its program takes {} of the {} there are, however it was split",
                                bytes_text(limit(fullest) + most_over), bytes_text(limit(fullest)));
  }
  return trial;
}

ProposalTrial ProposalTrials::try_solved(const PricedGraph& priced, const Proposal& proposal,
                                         const std::string& method, const std::string& schedule,
                                         const Patience& patience, int threads) const {
  if (patience.packings > 1) return try_out(priced, proposal, method, schedule, patience, threads);
  Proposal laid = proposal;
  lay_under(schedule, laid, costs_.cluster());
  const std::vector<StageRequest>& requests = laid.requests;
  for (std::size_t s = 0; s < requests.size(); ++s)
    if (!serves(proposal.solutions[s], proposal.requests[s], requests[s],
                costs_.on(mesh_of(requests[s])).cluster().memory_bytes, proposal.stages_per_mesh > 1))
      return {.method = method,
              .schedule = schedule,
              .failure = fmt::format("stage {} has no room for {} in flight, split as it is", s,
                                     count_text(requests[s].in_flight, "micro-batch"))};
  return try_out(priced, proposal, method, schedule, patience, threads);
}

}  // namespace alpa
