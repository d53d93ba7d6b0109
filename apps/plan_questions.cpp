#include "apps/plan_questions.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>

#include "apps/described_settings.h"
#include "apps/models.h"
#include "apps/plan_costs.h"
#include "libalpa/base/error.h"
#include "libalpa/base/log.h"
#include "libalpa/base/options.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_facts.h"
#include "libalpa/plan/compare_plans.h"
#include "libalpa/plan/explain.h"
#include "libalpa/plan/facts/facts_difference.h"
#include "libalpa/planner/tuning/runner_ups.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/text.h"
#include "libalpa/report/what_if.h"
#include "libalpa/report/why_not.h"

namespace alpa {
namespace {

/// "x0.5", "0.5"
double factor(const std::string& option, const std::string& text) {
  const char *begin = text.data() + (text.starts_with('x') ? 1 : 0), *end = text.data() + text.size();
  double value = 0;
  const auto [stop, code] = std::from_chars(begin, end, value);
  if (code != std::errc{} || stop != end || !kFactorRange.contains(value))
    refuse_text(option, "a factor, " + range_text(kFactorRange), text, "x2 for twice as much, x0.5 for half");
  return value;
}

ClusterChange change_of(const WhatIfOptions& o) {
  return {factor("--between-nodes", o.between_nodes), factor("--within-nodes", o.within_nodes),
          factor("--memory", o.memory), factor("--compute", o.compute), o.device};
}

void check_same_model(const std::filesystem::path& file, const Plan& plan,
                      const std::filesystem::path& other_file, const Plan& other) {
  if (plan.model_toml == other.model_toml) return;
  const std::string what = plan.model_name == other.model_name
                               ? fmt::format("two models that are both named '{}'", plan.model_name)
                               : fmt::format("'{}' and '{}'", plan.model_name, other.model_name);
  throw Error(ErrorKind::input,
              fmt::format("'{}' and '{}' are plans of different models: {}", file.string(),
                          other_file.string(), what),
              "two plans of one model file");
}

/// As it runs on that cluster.
ComparedPlan compared(const std::filesystem::path& file, const std::string& name, PlannedModel planned,
                      const Cluster& cluster, const CostModel& costs) {
  Plan& plan = planned.plan;
  if (plan.devices() > cluster.devices())
    throw Error(ErrorKind::input,
                fmt::format("'{}' takes {} devices, cluster '{}' has {}", file.string(), plan.devices(),
                            cluster.name, cluster.devices()),
                "a plan for as many devices or fewer");
  if (plan.cluster.servers > 0 && plan.cluster.devices_per_node != cluster.devices_per_node)
    throw Error(ErrorKind::input,
                fmt::format("'{}' has servers of {} devices, nodes of cluster '{}' have {}", file.string(),
                            plan.cluster.devices_per_node, cluster.name, cluster.devices_per_node),
                "a plan for nodes of as many devices");
  check_program(plan, planned.graph);
  plan.cluster = with_servers_of(plan, cluster);
  return {name, plan_facts(plan, planned.graph).split, plan.micro_batches,
          price_step(plan, lower(planned.graph, plan), costs.extrapolated(plan.cluster))};
}

}  // namespace

void describe(WhatIfOptions& o, OptionsVisitor& visit) {
  visit.field("between_nodes", o.between_nodes, "rate of the network interfaces, times", "xFACTOR");
  visit.field("within_nodes", o.within_nodes, "rate of the links within nodes, times", "xFACTOR");
  visit.field("memory", o.memory, "memory of each device, times", "xFACTOR");
  visit.field("compute", o.compute, "speed of all computation (arithmetic, memory's rate, launches), times",
              "xFACTOR");
  visit.field("device", o.device,
              fmt::format("other devices on the same links: {}", fmt::join(device_words(), ", ")), "WORD");
}

void ask_what_if(const std::filesystem::path& file, const std::filesystem::path& profile,
                 const WhatIfOptions& options, bool as_json, Log& log) {
  const ClusterChange change = change_of(options);
  changed({}, change);  // a device that is not known is noticed before the work
  const PlannedModel planned = read_planned_model(file);
  const Plan& plan = planned.plan;
  const auto [costs, remark, warning] = costs_of(plan, profile);
  if (!warning.empty()) log.warning(warning);
  check_program(plan, planned.graph);
  const std::vector<ClusterChange> changes =
      change == ClusterChange{} ? standard_changes() : std::vector{change};
  const std::vector<ChangedStep> steps = what_if(plan, planned.graph, costs, changes);
  if (as_json) {
    fmt::print("{}\n", JsonObject()
                           .set("format", "alpa-plan-what-if")
                           .set("format_version", "1.0")
                           .set("model", plan.model_name)
                           .set("costs", costs.is_measured() ? "measured, extrapolated" : "estimated")
                           .set("steps", what_if_json(steps))
                           .text());
    return;
  }
  std::string text = plan_heading(plan_facts(plan, planned.graph));
  if (!remark.empty()) text += fmt::format("step {}{}\n", seconds_text(steps.front().step_s), remark);
  if (costs.is_measured())
    text += "measured costs are extrapolated: each by as much as its estimate changes\n";
  print_with_legend(text + fmt::format("\n{}\nThe plan is kept as it is: alpa-plan MODEL.toml --cluster "
                                       "FILE.toml with a file of such a cluster may find a better one.\n",
                                       what_if_text(steps)));
}

void ask_why_not(const std::filesystem::path& file, const std::filesystem::path& other_file,
                 const std::filesystem::path& profile, bool as_json, Log& log) {
  PlannedModel planned = read_planned_model(file), other = read_planned_model(other_file);
  check_same_model(file, planned.plan, other_file, other.plan);
  const auto [costs, remark, warning] = costs_of(planned.plan, profile);
  if (!warning.empty()) log.warning(warning);
  const Cluster cluster = planned.plan.cluster, made_for = other.plan.cluster,
                runs_on = with_servers_of(other.plan, cluster);
  const bool are_apart = file.filename() != other_file.filename();
  const auto name = [&](const std::filesystem::path& path) {
    return are_apart ? path.filename().string() : path.string();
  };
  const PlanDifference difference{compared(file, name(file), std::move(planned), cluster, costs),
                                  compared(other_file, name(other_file), std::move(other), cluster, costs)};
  if (as_json) {
    fmt::print("{}\n", why_not_json(difference).text());
    return;
  }
  std::string text = why_not_text(difference);
  if (made_for != runs_on)
    text += fmt::format("\n'{}' was made for cluster '{}': it is priced as it would run on '{}'\n",
                        other_file.string(), made_for.name, cluster.name);
  if (!remark.empty())
    text += fmt::format("\n'{}': {}{}\n", file.string(), seconds_text(difference.plan.step.step_s), remark);
  print_with_legend(text);
}

void ask_runners_up(const std::filesystem::path& file, const std::filesystem::path& profile, Log& log) {
  const PlannedModel planned = read_planned_model(file);
  const auto [costs, remark, warning] = costs_of(planned.plan, profile);
  if (!warning.empty()) log.warning(warning);
  check_program(planned.plan, planned.graph);
  if (planned.plan.has_states_at_servers())
    throw Error(
        ErrorKind::input,
        fmt::format("'{}' has its states at servers: there is no other way for its gradients", file.string()),
        "a plan without --staleness");
  const RunnersUp found = runners_up(planned.plan, planned.graph, costs, thread_count(0));
  std::fputs(runners_up_text(found, remark).c_str(), stdout);
}

int ask_differences(const std::filesystem::path& first, const std::filesystem::path& second,
                    OutputForm form) {
  const PlannedModel a = read_planned_model(first), b = read_planned_model(second);
  const std::string lines = compare_plans(a.plan, b.plan);
  const FactsDifference difference =
      facts_difference(plan_facts(a.plan, a.graph), plan_facts(b.plan, b.graph));
  if (form == OutputForm::json)
    fmt::print("{}\n", difference_json(difference).set("same", lines.empty()).text());
  else if (form == OutputForm::csv)
    std::fputs(difference_csv(difference).c_str(), stdout);
  else if (!lines.empty())
    print_with_legend(fmt::format(
        "{}\nin the files\n{}",
        difference_text(difference, first.filename().string(), second.filename().string()), lines));
  return lines.empty() ? 0 : 1;
}

}  // namespace alpa
