#include "libalpa/planner/search/stage_floors.h"

#include <algorithm>

#include "libalpa/base/infinity.h"

namespace alpa {

StageFloors::StageFloors(const StageSpans& spans, const StageModes& modes, const WorkLowerBound& work,
                         int micro_batches)
    : spans_(spans), modes_(modes), micro_batches_(micro_batches) {
  for (const StageSpan& span : spans.all()) {
    StageFloor floor = work.floor(spans.first_layer(span), spans.end_layer(span), span.devices);
    floor.step_s = modes.least_step_s(span);
    if (floor.step_s < infinity)
      floor.micro_batch_s = std::max(floor.micro_batch_s, modes.least_micro_batch_s(span));
    // What neighbours need not wait for is of the first and the last layer.
    const StageSpan inner{span.first_unit + 1, span.end_unit - 1, span.devices};
    if (inner.first_unit < inner.end_unit)
      floor.turn_s += std::max(
          0.0, modes.least_micro_batch_s(inner) -
                   work.micro_batch_s(spans.first_layer(inner), spans.end_layer(inner), inner.devices));
    floors_.push_back(floor);
  }
}

FloorChoices StageFloors::within(double pipeline_s, const SolvedStages& solved, bool known_solutions,
                                 FloorChoices none) const {
  for (std::size_t i = 0; i < floors_.size(); ++i) {
    if (floors_[i].step_s == infinity) continue;
    const StageSpan& span = spans_.all()[i];
    for (const StageSides& sides :
         none.places().all_sides(span.devices, span.first_unit == 0, span.end_unit == spans_.units())) {
      const auto [before_s, behind_s] = modes_.least_arrivals(span, sides);
      StageFloor floor = floors_[i];
      floor.forward_s += before_s;
      floor.turn_s += before_s + behind_s;
      floor.micro_batch_s += before_s + behind_s;
      floor.step_s += micro_batches_ * (before_s + behind_s);
      add(span, sides, floor, pipeline_s, solved, known_solutions, none);
    }
  }
  return none;
}

void StageFloors::add(const StageSpan& span, const StageSides& sides, StageFloor floor, double pipeline_s,
                      const SolvedStages& solved, bool known_solutions, FloorChoices& choices) const {
  const auto offer = [&](StageFloor bounded, int most_in_flight) {
    // What is not left to the update is left to the micro-batches.
    const double most_update = std::max(0.0, pipeline_s - micro_batches_ * bounded.micro_batch_s);
    bounded.micro_batch_s = std::max(bounded.micro_batch_s, (bounded.step_s - most_update) / micro_batches_);
    bounded.step_s = std::max(bounded.step_s, micro_batches_ * bounded.micro_batch_s);
    if (bounded.step_s < pipeline_s)
      choices.offer(span.first_unit, span.end_unit, span.devices, sides, {most_in_flight, bounded});
  };
  int from = 1;  // more in flight never takes less
  for (const auto& [in_flight, stage] : solved.of_kind(spans_.kind_of(span), sides)) {
    if (in_flight > from) offer(floor, in_flight - 1);
    from = in_flight;
    if (known_solutions && stage->best.feasible) {
      StageFloor known = floor;
      known.micro_batch_s = stage->best.micro_batch_s;
      known.step_s = floor.step_s = stage->best.step_s;
      offer(known, in_flight);
      ++from;
    } else {
      floor.step_s = std::max(floor.step_s, stage->lower_bound_s);
    }
    if (floor.step_s == infinity) return;
  }
  offer(floor, 1 << 20);
}

}  // namespace alpa
