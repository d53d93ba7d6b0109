#include "apps/planning_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/plan_search.h"

namespace alpa {
namespace {

/// How a form of the model is called, and the one that it is beside.
struct FormNames {
  std::string own, other;
};

/// Puts beside a prediction the best of the other search; the bound is on plans of both.
void compare(Prediction& chosen, const Prediction* other, const FormNames& names) {
  if (other && other->lower_bound_s > 0 && other->bound_covers == chosen.bound_covers) {
    chosen.lower_bound_s = std::min(chosen.lower_bound_s, other->lower_bound_s);
    chosen.bound_covers += fmt::format(", {} or {}", names.own, names.other);
  } else if (chosen.lower_bound_s > 0) {
    chosen.bound_covers += ", " + names.own;
  }
  if (!other || other->candidates.empty()) return;
  Candidate best = other->candidates.front();
  best.method += ", " + names.other;
  best.verdict = best.step_s > chosen.step_s ? why_slower(best, chosen.candidates.front()) : "as fast";
  chosen.candidates.insert(
      std::ranges::find_if(chosen.candidates,
                           [&](const Candidate& c) { return c.step_s == 0 || c.step_s > best.step_s; }),
      best);
}

/// The best plan so far, of whichever form of the model; none of them may fit.
class FormsOfModel {
 public:
  FormsOfModel(ModelDefinition& model, const CostModel& costs, const PlannerOptions& options, Log& log)
      : model_(model), costs_(costs), options_(options), log_(log) {}

  void plan() {
    try {
      best_ = make_plan(planning_model(model_), costs_, options_, log_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::infeasible) throw;
      infeasible_ = std::current_exception();  // which may be of a kind of its own
    }
  }

  /// Where there is time for it. The model becomes the padded one where that is faster. `what`: is padded.
  void plan_padded(const ModelDefinition& padded, const std::string& what, const FormNames& names) {
    PlannerOptions rest = options_;
    rest.time_limit_s -= monotonic_s() - begin_;
    if (best_ && (best_->prediction.hit_time_limit || rest.time_limit_s <= 0)) return;
    log_.info("planning again, with " + what);
    try {
      Plan with = make_plan(planning_model(padded), costs_, rest, log_);
      Prediction* without = best_ ? &best_->prediction : nullptr;
      if (without && without->step_s <= with.prediction.step_s) {
        compare(*without, &with.prediction, {names.other, names.own});
        without->hit_time_limit |= with.prediction.hit_time_limit;
        return;
      }
      compare(with.prediction, without, names);
      best_ = std::move(with);
      model_ = padded;
    } catch (const Error& error) {
      const bool stopped = error.kind() == ErrorKind::stopped_early || dynamic_cast<const OutOfTime*>(&error);
      if (!best_) return;  // the first error says more
      if (error.kind() != ErrorKind::infeasible && !stopped) throw;
      best_->prediction.hit_time_limit |= stopped;
    }
  }

  Plan best() {
    if (!best_) std::rethrow_exception(infeasible_);
    return std::move(*best_);
  }

 private:
  ModelDefinition& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  Log& log_;
  const double begin_ = monotonic_s();
  std::optional<Plan> best_;
  std::exception_ptr infeasible_;
};

/// "842496 parameters", "1315.7 million parameters"
std::string parameters_text(std::int64_t count) {
  if (count < 1'000'000) return count_text(count, "parameter");
  return fmt::format("{:.1f} million parameters", static_cast<double>(count) / 1e6);
}

}  // namespace

PlanningModel planning_model(const ModelDefinition& model) {
  return {model.name, model.expanded_toml, model.training.batch,
          [&](std::int64_t samples) { return training_step_graph(model, samples); },
          model.training.group_samples};
}

Plan plan_with_padding(ModelDefinition& model, const CostModel& costs, const PlannerOptions& options,
                       Log& log) {
  if (options.pin) return make_plan(planning_model(model), costs, options, log);
  const int devices = options.devices > 0 ? options.devices : costs.cluster().devices();
  FormsOfModel forms(model, costs, options, log);
  forms.plan();
  if (const auto padded = with_padded_vocabulary(model, devices))
    forms.plan_padded(*padded,
                      fmt::format("the vocabulary padded to a multiple of {}", padded->training.pad_to),
                      {"padded", "not padded"});
  if (const auto padded = with_padded_heads(model, devices))
    forms.plan_padded(*padded, fmt::format("heads padded to a multiple of {}", padded->training.pad_heads_to),
                      {"heads padded", "heads not padded"});
  return forms.best();
}

std::string model_text(const ModelDefinition& model, const Graph& graph) {
  const double flops = step_flops(graph, static_cast<int>(model.training.batch / graph.samples));
  std::string text = fmt::format("{}: {}, {} a step", model.name, parameters_text(parameter_count(graph)),
                                 rate_text(flops, "FLOP"));
  if (const auto by_paper = paper_flops(model))
    text += fmt::format(" ({} by its paper)", rate_text(*by_paper, "FLOP"));
  return text;
}

}  // namespace alpa
