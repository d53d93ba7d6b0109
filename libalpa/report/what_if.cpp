#include "libalpa/report/what_if.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/report/stage_rows.h"

namespace alpa {
namespace {

/// "1.20 s -> 1.10 s"; once where both are the same.
std::string before_after(const std::string& before, const std::string& after) {
  return before == after ? before : before + " -> " + after;
}

std::array<double, 5> parts(const StepTerms& t) {
  return {t[StepTerm::forward] + t[StepTerm::backward],
          t[StepTerm::all_reduce] + t[StepTerm::all_gather] + t[StepTerm::reduce_scatter] +
              t[StepTerm::all_to_all] + t[StepTerm::shift],
          t[StepTerm::transfers], t[StepTerm::update] + t[StepTerm::synchronisation], t[StepTerm::waiting]};
}

std::string stages_before_after(const PricedStep& before, const PricedStep& after) {
  StageRows rows({"stage", "compute", "collectives", "transfers", "update", "waiting"});
  for (const MeshIndex m : before.terms.indices()) {
    const auto from = parts(before.terms[m]), to = parts(after.terms[m]);
    std::vector<std::string> cells;
    for (std::size_t p = 0; p < from.size(); ++p)
      cells.push_back(before_after(seconds_text(from[p]), seconds_text(to[p])));
    rows.add(before.stages[m], cells);
  }
  return rows.text();
}

std::string one_change_text(const ChangedStep& before, const ChangedStep& after) {
  return fmt::format("with        {}\nstep        {} -> {} ({})\nbinds       {}\nmemory      {}\n\n{}",
                     change_text(after.change), seconds_text(before.step_s), seconds_text(after.step_s),
                     relative_text(before.step_s, after.step_s),
                     before_after(binding_name(before.binding), binding_name(after.binding)),
                     before_after(memory_text(before), memory_text(after)),
                     stages_before_after(before, after));
}

std::string several_changes_text(const std::vector<ChangedStep>& steps) {
  std::vector<std::vector<std::string>> rows{{"with", "step", "", "memory of the fullest device", "binds"}};
  for (const ChangedStep& step : steps)
    rows.push_back({change_text(step.change), seconds_text(step.step_s),
                    &step == &steps.front() ? "" : relative_text(steps.front().step_s, step.step_s),
                    memory_text(step), binding_name(step.binding)});
  return text_table(rows, {1, 2});
}

}  // namespace

std::vector<ChangedStep> what_if(const Plan& plan, const Graph& graph, const CostModel& costs,
                                 const std::vector<ClusterChange>& changes) {
  const Program program = lower(graph, plan);
  std::vector<ChangedStep> steps{{price_step(plan, program, costs), {}}};
  for (const ClusterChange& change : changes)
    steps.push_back(
        {price_step(plan, program, costs.extrapolated(changed(costs.cluster(), change))), change});
  return steps;
}

std::string what_if_text(const std::vector<ChangedStep>& steps) {
  return steps.size() == 2 ? one_change_text(steps[0], steps[1]) : several_changes_text(steps);
}

JsonArray what_if_json(const std::vector<ChangedStep>& steps) {
  JsonArray rows;
  for (const ChangedStep& step : steps) {
    const ClusterChange& change = step.change;
    rows.add(JsonObject()
                 .set("with", change_text(change))
                 .set("between_nodes_factor", change.between_nodes)
                 .set("within_nodes_factor", change.within_nodes)
                 .set("memory_factor", change.memory)
                 .set("compute_factor", change.compute)
                 .set("device", step.cluster.device)
                 .set("step_s", step.step_s)
                 .set("binds", binding_name(step.binding))
                 .set("memory_bytes", step.memory_bytes)
                 .set("fullest_bytes", step.fullest.total)
                 .set("spare_bytes", step.spare_bytes())
                 .set("fits", step.fits())
                 .set("meshes", meshes_json(step)));
  }
  return rows;
}

}  // namespace alpa
