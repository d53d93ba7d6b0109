#include "libalpa/planner/tuning/runner_ups.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"

namespace alpa {
namespace {

/// A group with another way, and one choice of its buckets.
struct Alternative {
  std::size_t group = 0;
  SyncWay way = SyncWay::as_planned;
  TuningChoice choice;
};

}  // namespace

RunnersUp runners_up(const Plan& plan, const Graph& graph, const CostModel& costs, int threads) {
  const PlanChoices choices(plan, graph, costs);
  const std::vector<SyncVariable>& variables = choices.ways().variables();
  const TuningChoice as_planned = choices.as_planned();
  std::map<std::tuple<std::string, MeshIndex, Shape, std::vector<SyncWay>>, std::vector<std::size_t>> alike;
  for (std::size_t v = 0; v < variables.size(); ++v)
    alike[{choices.genes()[v].kind, variables[v].mesh,
           value_of(graph, graph.states[variables[v].parameter].value).type.shape, variables[v].ways}]
        .push_back(v);

  RunnersUp found;
  std::vector<Alternative> alternatives;
  for (const auto& [key, members] : alike) {
    const SyncVariable& first = variables[members.front()];
    RunnerUp group{graph.states[first.parameter].name, static_cast<int>(members.size()), first.mesh};
    if (members.size() > 1) {
      group.parameters = std::get<0>(key);
      std::ranges::replace(group.parameters, '#', '*');
    }
    group.way = first.ways.front();
    group.has_other = first.ways.size() > 1;
    for (const std::size_t v : members)
      group.bytes += byte_count(value_of(graph, variables[v].path.sum(graph)).type);
    for (std::size_t way = 1; way < first.ways.size(); ++way) {
      TuningChoice changed = as_planned;
      for (const std::size_t v : members) changed[v] = static_cast<int>(way);
      for (TuningChoice& choice : choices.with_buckets_anew(changed))
        alternatives.push_back({found.groups.size(), first.ways[way], std::move(choice)});
    }
    found.groups.push_back(std::move(group));
  }

  alternatives.push_back({0, SyncWay::as_planned, as_planned});
  std::vector<Assessment> assessed(alternatives.size());
  run_tasks(static_cast<int>(alternatives.size()), threads,
            [&](int i) { assessed[i] = choices.assess(alternatives[i].choice); });
  found.step_s = assessed.back().predicted_s;
  for (std::size_t i = 0; i + 1 < alternatives.size(); ++i) {
    RunnerUp& group = found.groups[alternatives[i].group];
    if (!assessed[i].fault.empty() || (group.next && assessed[i].predicted_s >= group.next_step_s)) continue;
    group.next = alternatives[i].way;
    group.next_step_s = assessed[i].predicted_s;
  }
  std::ranges::stable_sort(found.groups, {}, [](const RunnerUp& group) {
    return std::tuple(!group.next.has_value(), group.next_step_s);
  });
  return found;
}

std::string runners_up_text(const RunnersUp& found, const std::string& remark) {
  if (found.groups.empty())
    return "there is no gradient that could be synchronised in another way (those of tied weights, and ones "
           "that are "
           "compressed or delayed, go as planned)\n";
  std::vector<std::vector<std::string>> rows{
      {"gradients of", "", "mesh", "bytes", "way", "runner-up", "step with it", ""}};
  for (const RunnerUp& group : found.groups) {
    rows.push_back({group.parameters, fmt::format("x {}", group.count), fmt::format("{}", group.mesh),
                    bytes_text(group.bytes), sync_way_name(group.way)});
    if (group.next)
      rows.back().insert(rows.back().end(),
                         {sync_way_name(*group.next), seconds_text(group.next_step_s),
                          fmt::format("{:+.3f} ms", 1e3 * (group.next_step_s - found.step_s))});
    else
      rows.back().push_back(group.has_other ? "none fits" : "no other");
  }
  return fmt::format(
             "step {}{}; if gradients went another way, the fastest of those that fit, one row at a time\n",
             seconds_text(found.step_s), remark) +
         text_table(rows, {3, 6, 7});
}

}  // namespace alpa
