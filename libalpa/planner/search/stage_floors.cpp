#include "libalpa/planner/search/stage_floors.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/parallel_tasks.h"

namespace alpa {
namespace {

constexpr int kMostHeld = static_cast<int>(kMostMicroBatches);

/// What is known of stages that hold so many micro-batches or more, beside what is known of fewer.
struct Known {
  int in_flight = 1;
  const StageFloor* bounded = nullptr;
  const SolvedStage* solved = nullptr;
  const SolvedStage* runs = nullptr;  ///< solved where its update counts little
};

}  // namespace

StageFloors::StageFloors(const StageSpans& spans, const StageModes& modes, const WorkLowerBound& work,
                         int micro_batches)
    : spans_(spans), modes_(modes), work_(work), micro_batches_(micro_batches) {
  for (int kind = 0; kind < spans.kinds(); ++kind) floors_.push_back(floors_of(spans.of_kind(kind).front()));
}

void StageFloors::raise(int devices) {
  for (int kind = 0; kind < spans_.kinds(); ++kind)
    if (const StageSpan& span = spans_.of_kind(kind).front(); span.devices == devices)
      floors_[kind] = floors_of(span);
}

std::vector<StageFloors::Held> StageFloors::floors_of(const StageSpan& span) const {
  const auto work_of = [&](const StageSpan& of) {
    return work_.floor(spans_.first_layer(of), spans_.end_layer(of), of.devices);
  };
  // What neighbours need not wait for is of the first and the last layer.
  const StageSpan inner{span.first_unit + 1, span.end_unit - 1, span.devices};
  std::vector<Held> all;
  for (const int in_flight : modes_.in_flight_of_bounds(span.devices)) {
    StageFloor floor = work_of(span);
    const auto [step_s, micro_batch_s, weighed_s] = modes_.least(span, in_flight);
    floor.step_s = step_s;
    // Before there are templates, micro-batches alone are not bounded.
    if (micro_batch_s < infinity) floor.micro_batch_s = std::max(floor.micro_batch_s, micro_batch_s);
    if (inner.first_unit < inner.end_unit)
      if (const double inner_s = modes_.least(inner, in_flight).micro_batch_s; inner_s < infinity)
        floor.turn_s += std::max(0.0, inner_s - work_of(inner).micro_batch_s);
    if (all.empty() || floor != all.back().floor || weighed_s != all.back().weighed_s)
      all.push_back({in_flight, floor, weighed_s});
  }
  return all;
}

FloorChoices StageFloors::within(double pipeline_s, const SolvedStages& solved, bool known_solutions,
                                 FloorChoices none, int threads) const {
  const std::vector<StageSpan>& spans = spans_.all();
  run_tasks(static_cast<int>(spans.size()), threads, [&](int i) {
    const StageSpan& span = spans[i];
    for (const StageSides& sides :
         none.places().all_sides(span.devices, span.first_unit == 0, span.end_unit == spans_.units())) {
      const auto [before_s, behind_s] = modes_.least_arrivals(span, sides);
      std::vector<Held> held = floors_[spans_.kind_of(span)];
      for (auto& [in_flight, floor, weighed_s] : held) {
        floor.forward_s += before_s;
        floor.turn_s += before_s + behind_s;
        floor.inputs_turn_s += before_s + behind_s;
        floor.backward_s += behind_s;
        floor.micro_batch_s += before_s + behind_s;
        floor.step_s += micro_batches_ * (before_s + behind_s);
        weighed_s += micro_batches_ * (before_s + behind_s);
        // Of a step that is no longer than that.
        floor.update_s = std::max(0.0, (weighed_s - pipeline_s) / (kUpdateTimes - 1));
      }
      add(span, sides, held, pipeline_s, solved, known_solutions, none);
    }
  });
  return none;
}

/// More in flight never takes less, so what a solved stage shows holds for those that hold more.
void StageFloors::add(const StageSpan& span, const StageSides& sides, const std::vector<Held>& held,
                      double pipeline_s, const SolvedStages& solved, bool known_solutions,
                      FloorChoices& choices) const {
  const auto offer = [&](StageFloor bounded, int most_in_flight) {
    // What is not left to the update is left to the micro-batches.
    const double most_update = std::max(0.0, pipeline_s - micro_batches_ * bounded.micro_batch_s);
    bounded.micro_batch_s = std::max(bounded.micro_batch_s, (bounded.step_s - most_update) / micro_batches_);
    bounded.step_s = std::max(bounded.step_s, micro_batches_ * bounded.micro_batch_s);
    if (bounded.step_s < pipeline_s)
      choices.offer(span.first_unit, span.end_unit, span.devices, sides, {most_in_flight, bounded});
  };
  std::vector<Known> known;
  for (const Held& each : held) known.push_back({each.in_flight, &each.floor});
  const auto note = [&](bool update_counts_little, const SolvedStage* Known::*part) {
    for (const auto& [in_flight, stage] : solved.of_kind(spans_.kind_of(span), sides, update_counts_little)) {
      auto at = std::ranges::lower_bound(known, in_flight, {}, &Known::in_flight);
      if (at == known.end() || at->in_flight != in_flight) at = known.insert(at, {in_flight});
      (*at).*part = stage;
    }
  };
  note(false, &Known::solved);
  note(true, &Known::runs);
  StageFloor floor;
  for (auto at = known.begin(); at != known.end(); ++at) {
    const int most = at + 1 == known.end() ? kMostHeld : at[1].in_flight - 1;
    if (at->bounded) {
      const double step_s = std::max(floor.step_s, at->bounded->step_s),
                   micro_batch_s = std::max(floor.micro_batch_s, at->bounded->micro_batch_s);
      const double update_s = std::max(floor.update_s, at->bounded->update_s);
      floor = *at->bounded;
      floor.update_s = update_s;
      floor.step_s = step_s;
      floor.micro_batch_s = micro_batch_s;
    }
    if (at->runs) {
      const double most_update_s = std::max(0.0, pipeline_s - micro_batches_ * floor.micro_batch_s),
                   runs_s = at->runs->lower_bound_s - at->runs->update_weight * most_update_s;
      floor.micro_batch_s = std::max(floor.micro_batch_s, runs_s / micro_batches_);
      floor.step_s = std::max(floor.step_s, at->runs->lower_bound_s);
    }
    if (at->solved && known_solutions && at->solved->best.feasible) {
      StageFloor solution = floor;
      solution.micro_batch_s = at->solved->best.micro_batch_s;
      solution.step_s = floor.step_s = at->solved->best.step_s;
      solution.update_s = at->solved->best.update_s;
      offer(solution, at->in_flight);
      if (most == at->in_flight) continue;
    } else if (at->solved) {
      floor.step_s = std::max(floor.step_s, at->solved->lower_bound_s);
    }
    if (floor.step_s == infinity) return;
    offer(floor, most);
  }
}

}  // namespace alpa
