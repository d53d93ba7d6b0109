#include "libalpa/planner/stage/stage_edges.h"

#include <map>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

EdgeEnd end_at(const StageVariable& variable, std::size_t choice, std::vector<int> NodeOption::*layouts,
               int place, const MeshCosts& mesh_costs) {
  const auto flag = [&](const std::vector<bool>& flags) { return !flags.empty() && flags[choice]; };
  const int layout = variable.node < 0 ? variable.choices[choice]
                                       : (option_of(variable, choice, mesh_costs).*layouts)[place];
  return {layout, flag(variable.at_rest), flag(variable.as_made)};
}

}  // namespace

EdgeEnd start_of_edge(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                      const MeshCosts& mesh_costs) {
  return end_at(stage.variables[edge.from], choice,
                edge.from_operand ? &NodeOption::operands : &NodeOption::results, edge.from_place,
                mesh_costs);
}

EdgeEnd end_of_edge(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                    const MeshCosts& mesh_costs) {
  return end_at(stage.variables[edge.to], choice, &NodeOption::operands, edge.to_place, mesh_costs);
}

std::vector<double> edge_seconds(const StageVariables& stage, const StageEdge& edge, std::size_t from,
                                 const MeshCosts& mesh_costs) {
  const StageVariable& at_end = stage.variables[edge.to];
  const StageVariable& at_start = stage.variables[edge.from];
  const EdgeEnd start = start_of_edge(stage, edge, from, mesh_costs);
  const std::vector<double>& converted = mesh_costs.conversion_seconds(edge.value, start.layout);
  std::vector<double> seconds(at_end.choices.size());
  for (std::size_t to = 0; to < seconds.size(); ++to) {
    const EdgeEnd end = end_of_edge(stage, edge, to, mesh_costs);
    const bool same = start.layout == end.layout;
    const bool is_rest = at_start.segment && at_end.node < 0,
               from_rest = at_start.node < 0 && !at_start.segment;
    if ((is_rest && !at_start.at_rest.empty() && start.at_rest != same) ||
        (from_rest && !at_end.at_rest.empty() && end.at_rest != same)) {
      seconds[to] = infinity;
    } else if (!at_end.as_made.empty() && at_start.node >= 0) {
      seconds[to] = end.as_made == same ? 0 : infinity;
    } else if (!same && !end.as_made) {
      seconds[to] = converted[end.layout];
      if (at_end.sums_in_kernel) seconds[to] += option_of(at_end, to, mesh_costs).seconds;
    }
  }
  return seconds;
}

StageConversion conversion_of(const StageVariables& stage, const StageEdge& edge, int rest,
                              const HeldBytes& held, const MeshCosts& mesh_costs) {
  StageConversion made;
  made.from = edge.from;
  made.to = edge.to;
  made.rest = rest;
  std::map<EdgeEnd, int> ends;
  std::vector<EdgeEnd> end;
  for (std::size_t c = 0; c < stage.variables[edge.to].choices.size(); ++c) {
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
  for (std::size_t c = 0; c < stage.variables[edge.from].choices.size(); ++c) {
    const EdgeEnd start = start_of_edge(stage, edge, c, mesh_costs);
    const auto [known, is_new] = of_start.try_emplace(start, 2 * end.size(), -1);
    for (std::size_t e = 0; is_new && e < end.size(); ++e) {
      for (const bool as_made : {false, true})
        if (rest >= 0 || !as_made)
          known->second[StageConversion::place(static_cast<int>(e), as_made)] =
              case_of({static_cast<int>(e), as_made, held(start, end[e], as_made)});
    }
    made.case_of.push_back(known->second);
  }
  return made;
}

}  // namespace alpa
