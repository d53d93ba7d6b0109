#include "libalpa/planner/search/stage_solver.h"

#include <algorithm>
#include <optional>
#include <set>

namespace alpa {
namespace {

/// Ways to run a stage that are estimated to take that many times the best are not solved for it.
constexpr double kWorthSolving = 1.02;

enum class Outcome { fits, short_of_memory, left_out };

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

SolvedStage StageSolver::solve(const PlacedSpan& stage, int stages, double enough, double cutoff) const {
  const StageSpan& span = stage.span;
  SolvedStage solved;
  solved.span = span;
  solved.update_weight = stage.update_weight;
  std::set<StageMode> tried;
  double best_s = infinity;  // as it is weighed
  const auto [before_s, behind_s] = modes_.least_arrivals(span, stage.sides);
  const double least_arrivals_s = space_.micro_batches * (before_s + behind_s);
  const auto try_mode = [&](const StageMode& mode, const StageWay& way) {
    tried.insert(mode);
    const double least = modes_.least_step_s(mode, span) + least_arrivals_s,
                 left_s = std::max(0.0, clock_.left_s());
    const double most = stage.update_weight < 1 ? cutoff : std::min(cutoff, best_s);
    if (least >= most || left_s == 0) {
      solved.lower_bound_s = std::min(solved.lower_bound_s, least);
      solved.best.hit_time_limit |= left_s == 0;
      return Outcome::left_out;
    }
    SelectionOptions options;
    options.gap = space_.gap;
    options.effort = space_.effort;
    options.most_cbc_cells = space_.most_cbc_cells;
    options.time_limit_s = left_s;
    options.stop = clock_.stop();
    options.cutoff = std::min(cutoff, best_s);
    options.enough = enough;
    options.gap_of_enough = space_.gap * space_.micro_batches / stages;
    const StageSolution start = modes_.part(way.id, span);
    const StageRequest request = request_of(stage, mode);
    StageSolution solution = solve_stage(planning_, request, book_.known(mode.mesh), options, &start);
    const double own_s = weighed_s(request, solution.micro_batch_s, solution.update_s);
    const bool hit = solved.best.hit_time_limit || solution.hit_time_limit;
    const bool fits = solution.feasible, is_short = !fits && solution.least_memory > 0;
    solved.lower_bound_s = std::min(solved.lower_bound_s, std::max(least, solution.lower_bound_s));
    if (fits && own_s < best_s) {
      solved.mode = mode;
      solved.best = std::move(solution);
      best_s = own_s;
    } else if (is_short && (solved.least_memory == 0 || solution.least_memory < solved.least_memory)) {
      solved.least_memory = solution.least_memory;
    }
    solved.best.hit_time_limit = hit;
    return fits ? Outcome::fits : is_short ? Outcome::short_of_memory : Outcome::left_out;
  };
  const std::vector<StageModes::Estimated> modes = modes_.estimated(span, stage.in_flight);
  const double arrivals_s = step_s(modes_.arrivals(span, stage.sides));
  const auto estimated_s = [&](const StageWay& way) { return step_s(way.seconds) + arrivals_s; };
  for (const auto& [mode, way] : modes) {
    const bool is_near = estimated_s(way) <= kWorthSolving * estimated_s(modes.front().way);
    if (solved.best.feasible && (solved.best.step_s <= enough || !is_near)) break;
    Outcome outcome = try_mode(mode, way);
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
      const std::optional<StageWay> next = modes_.way_of(other, span, stage.in_flight);
      if (!next) break;
      outcome = try_mode(other, *next);
    }
  }
  solved.lower_bound_s = std::min(solved.lower_bound_s, modes_.least_step_s(span, tried) + least_arrivals_s);
  const double missing_s = solved.best.step_s - solved.lower_bound_s;
  solved.is_rough =
      solved.best.feasible && solved.best.step_s <= enough && missing_s > space_.gap * solved.best.step_s;
  solved.best.is_solved = solved.best.is_solved && !solved.is_rough;  // a start for what needs it at its best
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
  request.sides = stage.sides;
  request.pipeline_in_flight = most_in_flight_;
  request.update_weight = stage.update_weight;
  return request;
}

}  // namespace alpa
