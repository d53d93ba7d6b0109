#include "libalpa/planner/search/constraint_prices.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace alpa {
namespace {

constexpr double kSameStep = 1e-9;  ///< sums in another order

std::string list_of(const PlanConstraints& constraints) {
  std::vector<std::string> texts;
  for (const PlanConstraint& constraint : constraints.all)
    texts.push_back(fmt::format("{} ({})", constraint.where, constraint_text(constraint)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

void price_constraints(Plan& plan, const PlannerOptions& options, const Deadline& deadline,
                       const PlanBy& plan_by) {
  Prediction& prediction = plan.prediction;
  for (const PlanConstraint& constraint : options.constraints.all)
    prediction.constraints.push_back({constraint_text(constraint), constraint.where, 0});
  if (options.no_constraint_prices || prediction.hit_time_limit) return;
  const auto step_with = [&](PlanConstraints constraints) {
    PlannerOptions others = options;
    others.constraints = std::move(constraints);
    others.time_limit_s = deadline.seconds_left();
    if (others.time_limit_s <= 0) return 0.0;
    const std::optional<Plan> found = plan_by(others);
    if (!found || found->prediction.hit_time_limit) return 0.0;
    // This plan is one of those without the constraint too.
    return std::min(found->prediction.step_s, prediction.step_s);
  };
  prediction.unconstrained_s = step_with({});
  if (prediction.unconstrained_s == 0) return;
  const bool is_free = prediction.unconstrained_s >= prediction.step_s * (1 - kSameStep);
  const auto step_without = [&](std::size_t constraint) {
    if (is_free) return prediction.step_s;
    const PlanConstraints others = options.constraints.without(constraint);
    return others.empty() ? prediction.unconstrained_s : step_with(others);
  };
  for (std::size_t i = 0; i < prediction.constraints.size(); ++i)
    prediction.constraints[i].step_without_s = step_without(i);
}

std::string constraints_to_blame(const PlannerOptions& options, const Deadline& deadline,
                                 const PlanBy& plan_by) {
  const auto has_plan = [&](const PlanConstraints& constraints) {
    PlannerOptions others = options;
    others.constraints = constraints;
    others.effort = PlannerEffort::quick;
    others.time_limit_s = deadline.seconds_left();
    return others.time_limit_s > 0 && plan_by(others).has_value();
  };
  if (!has_plan({})) return "";
  PlanConstraints each;
  for (std::size_t i = 0; i < options.constraints.all.size(); ++i)
    if (has_plan(options.constraints.without(i))) each.all.push_back(options.constraints.all[i]);
  if (each.all.size() == 1) return fmt::format("no plan meets {}", list_of(each));
  if (!each.empty()) return fmt::format("no plan meets these together: {}", list_of(each));
  PlanConstraints together = options.constraints;
  for (std::size_t i = together.all.size(); i-- > 0;)
    if (const PlanConstraints fewer = together.without(i); !has_plan(fewer)) together = fewer;
  return fmt::format("no plan meets {}", list_of(together));
}

}  // namespace alpa
