#include "libalpa/planner/search/solved_stages.h"

#include <algorithm>

namespace alpa {

StageSeconds seconds_of(const StageSolution& solution, int micro_batches) {
  return {solution.micro_batch_s, (micro_batches - 1) * solution.micro_batch_s, solution.update_s};
}

SolvedStages::Key SolvedStages::key_of(const PlacedSpan& stage) const {
  return {spans_.kind_of(stage.span), stage.sides, stage.in_flight, stage.update_weight < 1};
}

const SolvedStage* SolvedStages::find(const PlacedSpan& stage) const {
  const auto at = solved_.find(key_of(stage));
  return at == solved_.end() ? nullptr : &at->second;
}

void SolvedStages::note(const PlacedSpan& stage, SolvedStage solved) {
  if (stage.update_weight < 1) return keep(stage, std::move(solved));
  if (const auto at = solved_.find(key_of(stage)); at != solved_.end()) {
    SolvedStage& known = at->second;  // rough
    if (known.best.feasible && (!solved.best.feasible || solved.best.step_s > known.best.step_s)) {
      known.is_rough = false;
      known.lower_bound_s = std::max(known.lower_bound_s, solved.lower_bound_s);
      return;
    }
  }
  correct(stage, solved);
  keep(stage, std::move(solved));
}

void SolvedStages::raise_bounds(const StageSolver& solver) {
  for (auto& [key, solved] : solved_) {
    const auto& [kind, sides, in_flight, counts_little] = key;
    if (solved.lower_bound_s < infinity)
      solved.lower_bound_s =
          std::max(solved.lower_bound_s,
                   solver.lower_bound_s({solved.span, sides, in_flight, 0, solved.update_weight}, solved));
  }
}

void SolvedStages::correct(const PlacedSpan& stage, const SolvedStage& solved) {
  Correction& correction = corrections_[spans_.kind_of(stage.span)];
  if (!solved.best.feasible) {
    correction.too_many_in_flight = std::min(correction.too_many_in_flight, stage.in_flight);
    return;
  }
  const StageWay best = modes_.estimated(stage.span, stage.in_flight).front().way;
  if (best.most_in_flight < stage.in_flight || solved.is_rough) return;
  const double estimated_s = step_s(best.seconds + modes_.arrivals(stage.span, stage.sides));
  correction.factor = std::max(correction.factor, solved.best.step_s / estimated_s);
}

void SolvedStages::keep(const PlacedSpan& stage, SolvedStage solved) {
  SolvedStage& known = solved_[key_of(stage)];
  if (known.id == 0) of_id_.push_back(&known);
  solved.id = known.id == 0 ? -static_cast<int>(of_id_.size()) : known.id;
  known = std::move(solved);
}

StageChoices SolvedStages::choices(const StageChoices& estimated) const {
  StageChoices choices = estimated.without_ways();
  const auto offer = [&](const StageSpan& span, const StageSides& sides, const StageWay& way) {
    choices.offer(span.first_unit, span.end_unit, span.devices, sides, way);
  };
  for (const StageSpan& span : spans_.all()) {
    const Correction& known = corrections_[spans_.kind_of(span)];
    for (const StageSides& sides : kEverySides)
      for (StageWay way : estimated.ways_on(span.devices, span.first_unit, span.end_unit, sides)) {
        way.seconds = {known.factor * way.seconds.first, known.factor * way.seconds.others,
                       known.factor * way.seconds.update};
        way.most_in_flight = std::min(way.most_in_flight, known.too_many_in_flight - 1);
        if (way.most_in_flight > 0) offer(span, sides, way);
      }
  }
  for (const auto& [key, solved] : solved_)
    if (const auto& [kind, sides, in_flight, _] = key; solved.best.feasible)
      for (const StageSpan& span : spans_.of_kind(kind))
        offer(span, sides, {in_flight, seconds_of(solved.best, micro_batches_), solved.id});
  return choices;
}

std::vector<SolvedStages::InFlight> SolvedStages::of_kind(int kind, const StageSides& sides,
                                                          bool little) const {
  std::vector<InFlight> found;
  for (auto at = solved_.lower_bound({kind, sides, 0, false}); at != solved_.end(); ++at) {
    const auto& [of_kind, between, in_flight, counts_little] = at->first;
    if (of_kind != kind || between != sides) break;
    if (counts_little == little) found.push_back({in_flight, &at->second});
  }
  return found;
}

}  // namespace alpa
