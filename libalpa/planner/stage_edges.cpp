#include "libalpa/planner/stage_edges.h"

#include <map>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

EdgeEnd end_at(const StageVariable& variable, std::size_t choice, int layout) {
  const std::vector<bool>& flags = variable.segment ? variable.at_rest : variable.as_made;
  return {layout, !flags.empty() && flags[choice]};
}

}  // namespace

std::vector<double> edge_seconds(const StageVariables& stage, const StageEdge& edge, std::size_t from,
                                 const MeshCosts& mesh_costs) {
  const int start = layout_at_start(stage, edge, from, mesh_costs);
  const StageVariable& at_end = stage.variables[static_cast<std::size_t>(edge.to)];
  const StageVariable& at_start = stage.variables[static_cast<std::size_t>(edge.from)];
  const bool from_maker = at_start.node >= 0;
  const std::vector<double>& converted = mesh_costs.conversion_seconds(edge.value, start);
  std::vector<double> seconds(at_end.choices.size());
  for (std::size_t to = 0; to < seconds.size(); ++to) {
    const int end = layout_at_end(stage, edge, to, mesh_costs);
    const bool is_rest = at_start.segment && at_end.node < 0,
               from_rest = at_start.node < 0 && !at_start.segment;
    if ((is_rest && !at_start.at_rest.empty() && at_start.at_rest[from] != (start == end)) ||
        (from_rest && !at_end.at_rest.empty() && at_end.at_rest[to] != (start == end))) {
      seconds[to] = infinity;
    } else if (!at_end.as_made.empty() && from_maker) {
      seconds[to] = at_end.as_made[to] == (start == end) ? 0 : infinity;
    } else if (start != end && (at_end.as_made.empty() || !at_end.as_made[to])) {
      seconds[to] = converted[static_cast<std::size_t>(end)];
      if (at_end.sums_in_kernel)
        seconds[to] += mesh_costs.options(at_end.node)[static_cast<std::size_t>(at_end.choices[to])].seconds;
    }
  }
  return seconds;
}

int layout_at_start(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                    const MeshCosts& mesh_costs) {
  const StageVariable& from = stage.variables[static_cast<std::size_t>(edge.from)];
  if (from.node < 0) return from.choices[choice];
  const NodeOption& option = mesh_costs.options(from.node)[static_cast<std::size_t>(from.choices[choice])];
  return option.results[static_cast<std::size_t>(edge.from_place)];
}

int layout_at_end(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                  const MeshCosts& mesh_costs) {
  const StageVariable& to = stage.variables[static_cast<std::size_t>(edge.to)];
  if (to.node < 0) return to.choices[choice];
  const NodeOption& option = mesh_costs.options(to.node)[static_cast<std::size_t>(to.choices[choice])];
  return option.operands[static_cast<std::size_t>(edge.to_place)];
}

EdgeEnd start_of_edge(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                      const MeshCosts& mesh_costs) {
  return end_at(stage.variables[static_cast<std::size_t>(edge.from)], choice,
                layout_at_start(stage, edge, choice, mesh_costs));
}

EdgeEnd end_of_edge(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                    const MeshCosts& mesh_costs) {
  return end_at(stage.variables[static_cast<std::size_t>(edge.to)], choice,
                layout_at_end(stage, edge, choice, mesh_costs));
}

StageConversion conversion_of(const StageVariables& stage, const StageEdge& edge, int rest,
                              const HeldBytes& held, const MeshCosts& mesh_costs) {
  StageConversion made;
  made.from = edge.from;
  made.to = edge.to;
  made.rest = rest;
  std::map<EdgeEnd, int> ends;
  std::vector<EdgeEnd> end;
  for (std::size_t c = 0; c < stage.variables[static_cast<std::size_t>(edge.to)].choices.size(); ++c) {
    const EdgeEnd now = end_of_edge(stage, edge, c, mesh_costs);
    const auto [known, is_new] = ends.try_emplace(now, static_cast<int>(ends.size()));
    if (is_new) end.push_back(now);
    made.end_of.push_back(known->second);
  }
  std::map<StageConversion::Case, int> cases;
  std::map<EdgeEnd, std::vector<int>> of_start;
  const auto case_of = [&](StageConversion::Case now) {
    const auto [known, is_new] = cases.try_emplace(now, static_cast<int>(cases.size()));
    if (is_new) made.cases.push_back(std::move(now));
    return known->second;
  };
  for (std::size_t c = 0; c < stage.variables[static_cast<std::size_t>(edge.from)].choices.size(); ++c) {
    const EdgeEnd start = start_of_edge(stage, edge, c, mesh_costs);
    const auto [known, is_new] = of_start.try_emplace(start, 2 * end.size(), -1);
    for (std::size_t e = 0; is_new && e < end.size(); ++e) {
      known->second[2 * e] = case_of({static_cast<int>(e), false, held(start, end[e], false)});
      if (rest >= 0)
        known->second[2 * e + 1] = case_of({static_cast<int>(e), true, held(start, end[e], true)});
    }
    made.case_of.push_back(known->second);
  }
  return made;
}

}  // namespace alpa
