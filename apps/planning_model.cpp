#include "apps/planning_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/plan_search.h"

namespace alpa {
namespace {

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
  std::optional<ModelDefinition> padded;
  if (!options.pin)
    padded = padded_for(model, options.devices > 0 ? options.devices : costs.cluster().devices());
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
    without->prediction.hit_time_limit |= with.prediction.hit_time_limit;
  } catch (const Error& error) {
    if (infeasible) throw *infeasible;
    const bool stopped = error.kind() == ErrorKind::stopped_early || dynamic_cast<const OutOfTime*>(&error);
    if (error.kind() != ErrorKind::infeasible && !stopped) throw;
    without->prediction.hit_time_limit |= stopped;
  }
  return *without;
}

}  // namespace alpa
