#include "libalpa/report/run_page.h"

#include <cmath>

#include "libalpa/plan/facts/legend.h"
#include "libalpa/report/page.h"

namespace alpa {
namespace {

constexpr std::size_t kMostPoints = 2000;

JsonArray column(const std::vector<double>& values) {
  JsonArray array;
  for (const double value : values) array.add(value);
  return array;
}

JsonObject history_json(const RunHistory& run) {
  const RunHistory thin = run.thinned(kMostPoints);
  JsonObject json;
  for (const RunColumn& each : run_columns())
    if (!each.adds_up && each.values != &RunHistory::evaluation_loss)
      json.set(each.name, column(thin.*each.values));
  JsonArray evaluated, evaluations;
  for (std::size_t i = 0; i < run.step.size(); ++i)
    if (!std::isnan(run.evaluation_loss[i])) {
      evaluated.add(run.step[i]);
      evaluations.add(run.evaluation_loss[i]);
    }
  return json.set("emulated", run.emulated)
      .set("evaluated", evaluated)
      .set("evaluation_loss", evaluations)
      .set("first_of_job", column(run.first_of_job))
      .set("steps", run.step.size())
      .set("last_step", run.step.back())
      .set("samples", known_sum(run.samples))
      .set("tokens", known_sum(run.tokens))
      .set("seconds", known_sum(run.step_s))
      .set("waited_for_data_s", known_sum(run.data_s))
      .set("stood_still_for_saves_s", known_sum(run.checkpoint_s))
      .set("saved_bytes", known_sum(run.saved_bytes))
      .set("saved_s", known_sum(run.saved_s))
      .set("median_step_s", known_median(run.step_s))
      .set("predicted_s", known_median(run.predicted_step_s));
}

}  // namespace

std::string run_page(const std::string& skeleton, const std::string& title, const RunHistory& run,
                     const std::optional<PageEntry>& plan) {
  JsonArray plans;
  if (plan) plans.add(entry_json(*plan));
  return page_with(skeleton, JsonObject()
                                 .set("title", title)
                                 .set("run", history_json(run))
                                 .set("plans", plans)
                                 .set("legend", legend_json()));
}

}  // namespace alpa
