#include "libalpa/planner/search/pipeline_bounds.h"

#include <algorithm>

namespace alpa {
namespace {

/// Of a bound: how near it is bisected.
constexpr double kBisected = 1e-3;

/// So much further than a bound is looked first for a pipeline, then twice as far and so on: what takes
/// longer need not be put together.
constexpr double kLookedAtOnce = 0.04;

}  // namespace

PipelineBounds::PipelineBounds(const SearchSpace& space, const StageSpans& spans, StageModes& modes,
                               const WorkLowerBound& work, SolvedStages& solved, const StageSolver& solver,
                               FloorChoices none, std::vector<PipelineForm> forms, double least_s,
                               PlanningClock& clock, FillOptions filling)
    : space_(space),
      modes_(modes),
      solved_(solved),
      solver_(solver),
      none_(std::move(none)),
      none_likely_(none_.layers(), none_.places().likely(), none_.sizes()),
      forms_(std::move(forms)),
      known_s_(forms_.size(), least_s),
      clock_(clock),
      filling_(std::move(filling)),
      floors_(spans, modes, work, space.micro_batches) {}

LeastPipeline PipelineBounds::least(double pipeline_s, bool known_solutions, const PipelineForm& form) const {
  auto pipelines = least_pipelines(floors_.within(pipeline_s, solved_, known_solutions,
                                                  known_solutions ? none_likely_ : none_, filling_.threads),
                                   form, space_.least_stages, pipeline_s, filling_);
  if (!pipelines) return {};
  const auto least = std::ranges::min_element(*pipelines, {}, &LeastPipeline::seconds);
  return least == pipelines->end() ? LeastPipeline{{}, pipeline_s} : std::move(*least);
}

/// Bounds only rise, so it is looked for from what is known on.
LeastPipeline PipelineBounds::least_from(double& known_s, double pipeline_s, bool known_solutions,
                                         const PipelineForm& form) const {
  for (double further = kLookedAtOnce; known_s < pipeline_s; further *= 2) {
    const double limit_s = known_s > 0 ? std::min(pipeline_s, (1 + further) * known_s) : pipeline_s;
    LeastPipeline found = least(limit_s, known_solutions, form);
    known_s = std::max(known_s, found.seconds);
    if (!found.stages.empty() || filling_.stopped()) return found;
  }
  return {{}, pipeline_s};
}

/// From the bound on, as solutions that are replaced by better ones take less than before.
LeastPipeline PipelineBounds::least_unsolved(double pipeline_s) const {
  double known_s = known_s_.front();
  return least_from(known_s, pipeline_s, true, forms_.front());
}

std::pair<LeastPipeline, const PipelineForm*> PipelineBounds::least(double pipeline_s) {
  for (;;) {
    const auto form = static_cast<std::size_t>(std::ranges::min_element(known_s_) - known_s_.begin());
    LeastPipeline found = least_from(known_s_[form], pipeline_s, false, forms_[form]);
    const double least_known_s = std::ranges::min(known_s_);
    const bool is_least = found.stages.empty() ? least_known_s >= pipeline_s : found.seconds <= least_known_s;
    if (is_least || filling_.stopped()) return {std::move(found), &forms_[form]};
  }
}

/// What is more than `bound_s` need not be known. The shorter a time is, the more is known of pipelines that
/// take less: it is bisected up to where there are some.
double PipelineBounds::bound_under(std::size_t form, double best_s, double bound_s) {
  double& known_s = known_s_[form];
  while (known_s < bound_s) {
    const LeastPipeline least_of_best = least_from(known_s, best_s, false, forms_[form]);
    if (least_of_best.stages.empty() || !raise(least_of_best, forms_[form], best_s)) break;
  }
  for (double above = bound_s; above - known_s > kBisected * bound_s && !filling_.stopped();) {
    const double middle = (known_s + above) / 2;
    const LeastPipeline least_of_middle = least(middle, false, forms_[form]);
    known_s = std::max(known_s, least_of_middle.seconds);
    if (!least_of_middle.stages.empty()) above = middle;
  }
  return std::min(bound_s, known_s);
}

double PipelineBounds::bound_of_all(double best_s) {
  double bound_s = best_s;
  for (std::size_t form = 0; form < forms_.size(); ++form) bound_s = bound_under(form, best_s, bound_s);
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
