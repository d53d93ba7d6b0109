#include "libalpa/planner/search/pipeline_bounds.h"

#include <algorithm>

namespace alpa {
namespace {

/// Of a bound: how near it is bisected.
constexpr double kBisected = 1e-3;

}  // namespace

PipelineBounds::PipelineBounds(const SearchSpace& space, const StageSpans& spans, StageModes& modes,
                               const WorkLowerBound& work, SolvedStages& solved, const StageSolver& solver,
                               FloorChoices none, std::vector<PipelineForm> forms, PlanningClock& clock,
                               std::function<bool()> stops)
    : space_(space),
      modes_(modes),
      solved_(solved),
      solver_(solver),
      none_(std::move(none)),
      forms_(std::move(forms)),
      known_s_(forms_.size(), 0),
      clock_(clock),
      stops_(std::move(stops)),
      floors_(spans, modes, work, space.micro_batches) {}

LeastPipeline PipelineBounds::least(double pipeline_s, bool known_solutions, const PipelineForm& form) const {
  std::vector<LeastPipeline> pipelines = least_pipelines(
      floors_.within(pipeline_s, solved_, known_solutions, none_), form, space_.least_stages, stops_);
  const auto least = std::ranges::min_element(pipelines, {}, &LeastPipeline::seconds);
  return least == pipelines.end() ? LeastPipeline{{}, pipeline_s} : std::move(*least);
}

/// Bounds only rise, so those of schedules that were higher before need not be found again.
std::pair<LeastPipeline, const PipelineForm*> PipelineBounds::least(double pipeline_s) {
  for (;;) {
    const auto form = static_cast<std::size_t>(std::ranges::min_element(known_s_) - known_s_.begin());
    LeastPipeline found{{}, pipeline_s};
    if (known_s_[form] < pipeline_s) found = least(pipeline_s, false, forms_[form]);
    known_s_[form] = std::max(known_s_[form], found.seconds);
    if (found.seconds <= std::ranges::min(known_s_)) return {std::move(found), &forms_[form]};
  }
}

/// The shorter a time is, the more is known of pipelines that take less: it is bisected up to where there are
/// some.
double PipelineBounds::bound_under(const PipelineForm& form, double best_s, double bound_s) {
  LeastPipeline known;
  do {
    known = least(best_s, false, form);
  } while (known.seconds < bound_s && raise(known, form, best_s));
  double none_below = known.seconds;
  for (double above = bound_s; above - none_below > kBisected * bound_s;) {
    const double middle = (none_below + above) / 2,
                 least_s = std::min(middle, least(middle, false, form).seconds);
    none_below = std::max(none_below, least_s);
    if (least_s < middle) above = middle;
  }
  return std::min(bound_s, none_below);
}

double PipelineBounds::bound_under_others(double best_s, double of_first_s) {
  double bound_s = of_first_s;
  for (std::size_t form = 1; form < forms_.size(); ++form)
    bound_s = bound_under(forms_[form], best_s, bound_s);
  return bound_s;
}

bool PipelineBounds::raise(const LeastPipeline& pipeline, const PipelineForm& form, double best_s) {
  std::vector<PlacedSpan> stages = placed_spans(pipeline, form, none_.places());
  std::ranges::stable_sort(stages, std::ranges::greater(), &PlacedSpan::step_s);
  for (const PlacedSpan& stage : stages)
    if (modes_.raise_bounds(stage.span, stage.in_flight, best_s, clock_)) {
      floors_.raise(stage.span.devices);
      solved_.raise_bounds(solver_);
      return true;
    }
  return false;
}

std::vector<PlacedSpan> PipelineBounds::worth_work(const LeastPipeline& pipeline,
                                                   const PipelineForm& form) const {
  struct Gain {
    PlacedSpan stage;
    double seconds = 0;
  };
  std::vector<StageFloor> floors;
  for (const LeastPipeline::Stage& stage : pipeline.stages) floors.push_back(stage.floor);
  std::vector<Gain> all;
  const std::vector<PlacedSpan> stages = placed_spans(pipeline, form, none_.places());
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const double weight : {1.0, kUpdateCountsLittle}) {
      PlacedSpan stage = stages[s];
      stage.update_weight = weight;
      if (const SolvedStage* known = solved_.find(stage); known && !solver_.is_open(stage, *known)) continue;
      const StageSeconds most = likely_s(stage);
      StageFloor& floor = floors[s];
      const StageFloor before = floor;
      if (weight < 1)
        floor.micro_batch_s = std::max(floor.micro_batch_s, most.first);
      else
        floor.step_s = std::max(floor.step_s, step_s(most));
      floor.step_s = std::max(floor.step_s, space_.micro_batches * floor.micro_batch_s);
      all.push_back({stage, least_pipeline_s(floors, form) - pipeline.seconds});
      floor = before;
    }
  // Estimates may be too low, so of those that seem to gain nothing the slowest may do so.
  std::ranges::stable_sort(all, [](const Gain& a, const Gain& b) {
    return std::pair(a.seconds, a.stage.step_s) > std::pair(b.seconds, b.stage.step_s);
  });
  std::vector<PlacedSpan> worth;
  for (const Gain& each : all) worth.push_back(each.stage);
  return worth;
}

/// By its solution, or else by estimates: about as much as its bound may come to.
StageSeconds PipelineBounds::likely_s(const PlacedSpan& stage) const {
  PlacedSpan in_full = stage;
  in_full.update_weight = 1;
  for (const PlacedSpan& solved : {stage, in_full})
    if (const SolvedStage* known = solved_.find(solved); known && known->best.feasible)
      return seconds_of(known->best, space_.micro_batches);
  const std::vector<StageModes::Estimated> estimated = modes_.estimated(stage.span, stage.in_flight);
  if (estimated.empty()) return {};
  return estimated.front().way.seconds + modes_.arrivals(stage.span, stage.sides);
}

}  // namespace alpa
