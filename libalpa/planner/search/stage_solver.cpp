#include "libalpa/planner/search/stage_solver.h"

#include <algorithm>
#include <optional>

namespace alpa {
namespace {

/// Ways to run a stage that are estimated to take that many times the best are not solved for it.
constexpr double kWorthSolving = 1.02;

}  // namespace

StageSolver::StageSolver(const PlanningGraph& planning, const SearchSpace& space, const CostTable& book,
                         const StageSpans& spans, const StageModes& modes, const PlanningClock& clock,
                         int most_in_flight)
    : planning_(planning),
      space_(space),
      book_(book),
      spans_(spans),
      modes_(modes),
      clock_(clock),
      most_in_flight_(most_in_flight) {}

/// Before it is solved, of weighed_s.
double StageSolver::least_s(const PlacedSpan& stage, const StageMode& mode) const {
  const auto [step_s, micro_batch_s, weighed_s] = modes_.least(mode, stage.span, stage.in_flight);
  // Micro-batches alone are not bounded on meshes that are of no use.
  if (stage.update_weight == 1 || step_s == infinity) return step_s + least_arrivals_s(stage);
  return (1 - stage.update_weight) * space_.micro_batches * micro_batch_s + stage.update_weight * step_s +
         least_arrivals_s(stage);
}

/// In a step.
double StageSolver::least_arrivals_s(const PlacedSpan& stage) const {
  const auto [before_s, behind_s] = modes_.least_arrivals(stage.span, stage.sides);
  return space_.micro_batches * (before_s + behind_s);
}

StageSolver::Outcome StageSolver::try_mode(const PlacedSpan& stage, const Limits& limits, std::int64_t effort,
                                           const StageMode& mode, const StageWay& way,
                                           SolvedStage& solved) const {
  SolvedStage::Trial& trial = solved.tried[mode];
  const StageRequest request = request_of(stage, mode);
  const auto weighed = [&](const StageSolution& solution) {
    return solution.feasible ? weighed_s(request, solution.micro_batch_s, solution.update_s) : infinity;
  };
  const double best_s = weighed(solved.best), left_s = std::max(0.0, clock_.left_s());
  const double least = least_s(stage, mode);
  const double most = stage.update_weight < 1 ? limits.cutoff : std::min(limits.cutoff, best_s);
  if (least >= most || left_s == 0) {
    trial.lower_bound_s = std::max(trial.lower_bound_s, least);
    solved.best.hit_time_limit |= left_s == 0;
    return Outcome::left_out;
  }
  SelectionOptions options;
  options.gap = space_.gap;
  options.effort = trial.effort = effort;
  options.most_cbc_cells = space_.most_cbc_cells;
  options.time_limit_s = left_s;
  options.stop = clock_.stop();
  options.cache = space_.cache;
  options.cutoff = std::min(limits.cutoff, best_s);
  options.enough = limits.enough;
  options.gap_of_enough = space_.gap * space_.micro_batches / limits.stages;
  const StageSolution start = modes_.part(way.id, stage.span);
  StageSolution solution = solve_stage(planning_, request, book_.known(mode.mesh), options, &start);
  const bool hit = solved.best.hit_time_limit || solution.hit_time_limit;
  const bool fits = solution.feasible, is_short = !fits && solution.least_memory > 0;
  // Beyond the cutoff there may be choices that cost no more than that, the best so far among them.
  const double bound_s =
      fits || is_short ? solution.lower_bound_s : std::min(solution.lower_bound_s, options.cutoff);
  trial.lower_bound_s = std::max({trial.lower_bound_s, least, bound_s});
  if (weighed(solution) < best_s) {
    solved.mode = mode;
    solved.best = std::move(solution);
  } else if (is_short && (solved.least_memory == 0 || solution.least_memory < solved.least_memory)) {
    solved.least_memory = solution.least_memory;
  }
  solved.best.hit_time_limit = hit;
  return fits ? Outcome::fits : is_short ? Outcome::short_of_memory : Outcome::left_out;
}

std::pair<StageMode, SolvedStage::Trial> StageSolver::least_mode(const PlacedSpan& stage,
                                                                 const SolvedStage& solved) const {
  std::pair<StageMode, SolvedStage::Trial> least{{}, {infinity, 0}};
  const auto take = [&](const StageMode& mode, const SolvedStage::Trial& trial) {
    if (trial.lower_bound_s < least.second.lower_bound_s) least = {mode, trial};
  };
  for (const StageMode& mode : modes_.modes_of(stage.span)) {
    const auto tried = solved.tried.find(mode);
    const auto [known_s, effort] = tried == solved.tried.end() ? SolvedStage::Trial{} : tried->second;
    take(mode, {std::max(known_s, least_s(stage, mode)), effort});
  }
  return least;
}

SolvedStage StageSolver::solve(const PlacedSpan& stage, const Limits& limits) const {
  const StageSpan& span = stage.span;
  const double enough = limits.enough;
  SolvedStage solved;
  solved.span = span;
  solved.update_weight = stage.update_weight;
  const std::vector<StageModes::Estimated> modes = modes_.estimated(span, stage.in_flight);
  const double arrivals_s = step_s(modes_.arrivals(span, stage.sides));
  const auto estimated_s = [&](const StageWay& way) { return step_s(way.seconds) + arrivals_s; };
  for (const auto& [mode, way] : modes) {
    const bool is_near = estimated_s(way) <= kWorthSolving * estimated_s(modes.front().way);
    if (solved.best.feasible && (solved.best.step_s <= enough || !is_near)) break;
    Outcome outcome = try_mode(stage, limits, space_.effort, mode, way, solved);
    // Memory may suffice for more layers that keep what they made than was estimated, or for fewer.
    const int direction = outcome == Outcome::fits ? -1 : 1;
    const int layers = spans_.end_layer(span) - spans_.first_layer(span);
    StageMode other = mode;
    for (int step = 1; outcome != Outcome::left_out; step *= 2) {
      if (direction < 0 && (outcome == Outcome::short_of_memory || solved.best.step_s <= enough)) break;
      if (direction > 0 && outcome == Outcome::fits) break;
      const int recomputed = std::clamp(other.recomputed_layers + direction * step, 0, layers);
      if (recomputed == other.recomputed_layers) break;
      other.recomputed_layers = recomputed;
      if (recomputed == 0) other.form = RecomputeForm::full;
      const std::optional<StageWay> next = modes_.way_of(other, span, stage.in_flight);
      if (!next) break;
      outcome = try_mode(stage, limits, space_.effort, other, *next, solved);
    }
  }
  solved.lower_bound_s = least_mode(stage, solved).second.lower_bound_s;
  const double missing_s = solved.best.step_s - solved.lower_bound_s;
  solved.is_rough =
      solved.best.feasible && solved.best.step_s <= enough && missing_s > space_.gap * solved.best.step_s;
  solved.best.is_solved = solved.best.is_solved && !solved.is_rough;  // a start for what needs it at its best
  return solved;
}

bool StageSolver::is_open(const PlacedSpan& stage, const SolvedStage& solved) const {
  const auto [mode, trial] = least_mode(stage, solved);
  return trial.lower_bound_s < infinity && trial.effort < kHarder * space_.effort &&
         modes_.way_of(mode, stage.span, stage.in_flight);
}

SolvedStage StageSolver::with_higher_bound(const PlacedSpan& stage, const Limits& limits,
                                           SolvedStage solved) const {
  PlacedSpan same = stage;
  same.span = solved.span;
  const auto [mode, trial] = least_mode(same, solved);
  const std::optional<StageWay> way = modes_.way_of(mode, same.span, stage.in_flight);
  try_mode(same, limits, trial.effort > 0 ? kHarder * space_.effort : space_.effort, mode, *way, solved);
  solved.lower_bound_s = least_mode(same, solved).second.lower_bound_s;
  return solved;
}

StageRequest StageSolver::request_of(const PlacedSpan& stage, const StageMode& mode) const {
  StageRequest request;
  request.first_layer = spans_.first_layer(stage.span);
  request.end_layer = spans_.end_layer(stage.span);
  request.mesh = mode.mesh;
  request.micro_batches = space_.micro_batches;
  request.in_flight = stage.in_flight;
  request.recomputed_layers = mode.recomputed_layers;
  request.recompute_form = mode.form;
  request.sides = stage.sides;
  request.pipeline_in_flight = most_in_flight_;
  request.update_weight = stage.update_weight;
  return request;
}

}  // namespace alpa
