#include "apps/planning_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/planner/make_plan.h"

namespace alpa {
namespace {

/// The model with vocabularies that so many devices can split evenly; nullopt where they can as it is, or
/// where it says itself what to pad.
std::optional<ModelDefinition> padded_for(const ModelDefinition& model, const CostModel& costs,
                                          const PlannerOptions& options) {
  constexpr int kMost = 128;  // rows that may be added
  if (model.training.pad_to != 0 || model.training.optimizer == OptimizerKind::adafactor || options.pin)
    return {};
  const int devices = options.devices > 0 ? options.devices : costs.cluster().devices();
  int multiple = std::min(devices, kMost);
  while (devices % multiple != 0) --multiple;
  if (multiple == 1) return {};
  ModelDefinition padded = padded_model(model, multiple);
  const Graph graph = forward_graph(padded, model.training.batch, true);
  if (std::ranges::none_of(graph.states, [](const State& state) { return state.padding > 0; })) return {};
  return padded;
}

/// Puts beside a prediction the best of the other search; the bound is on plans of both.
void compare(Prediction& chosen, const std::string& own_words, const Prediction* other,
             const std::string& other_words) {
  if (other && other->lower_bound_s > 0 && other->bound_covers == chosen.bound_covers) {
    chosen.lower_bound_s = std::min(chosen.lower_bound_s, other->lower_bound_s);
    chosen.bound_covers += ", padded or not";
  } else if (chosen.lower_bound_s > 0) {
    chosen.bound_covers += fmt::format(", {}", own_words);
  }
  if (!other || other->candidates.empty()) return;
  Candidate best = other->candidates.front();
  best.method += ", " + other_words;
  best.verdict = best.step_s > chosen.step_s ? why_slower(best, chosen.candidates.front()) : "as fast";
  chosen.candidates.insert(
      std::ranges::find_if(chosen.candidates,
                           [&](const Candidate& c) { return c.step_s == 0 || c.step_s > best.step_s; }),
      best);
}

}  // namespace

PlanningModel planning_model(const ModelDefinition& model) {
  return {model.name, model.expanded_toml, model.training.batch,
          [&](std::int64_t samples) { return training_step_graph(model, samples); },
          model.training.group_samples};
}

Plan plan_with_padding(ModelDefinition& model, const CostModel& costs, const PlannerOptions& options,
                       Log& log) {
  const double begin = monotonic_s();
  const std::optional<ModelDefinition> padded = padded_for(model, costs, options);
  if (!padded) return make_plan(planning_model(model), costs, options, log);

  std::optional<Plan> without;
  std::optional<Error> infeasible;
  try {
    without = make_plan(planning_model(model), costs, options, log);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::infeasible) throw;
    infeasible = error;
  }
  PlannerOptions rest = options;
  rest.time_limit_s -= monotonic_s() - begin;
  if (without && (without->prediction.hit_time_limit || rest.time_limit_s <= 0)) return *without;
  log.info(
      fmt::format("planning again, with the vocabulary padded to a multiple of {}", padded->training.pad_to));
  try {
    Plan with = make_plan(planning_model(*padded), costs, rest, log);
    if (!without || with.prediction.step_s < without->prediction.step_s) {
      model = *padded;
      compare(with.prediction, "padded", without ? &without->prediction : nullptr, "not padded");
      return with;
    }
    compare(without->prediction, "not padded", &with.prediction, "padded");
  } catch (const Error& error) {
    if (infeasible) throw *infeasible;
    if (error.kind() != ErrorKind::infeasible && error.kind() != ErrorKind::stopped_early) throw;
  }
  return *without;
}

}  // namespace alpa
