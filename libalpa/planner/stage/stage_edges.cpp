#include "libalpa/planner/stage/stage_edges.h"

#include <algorithm>

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

/// Of few: where it is among them, of which it then is one.
int place_in(std::vector<EdgeEnd>& ends, const EdgeEnd& end) {
  const auto known = std::ranges::find(ends, end);
  const auto place = static_cast<int>(known - ends.begin());
  if (known == ends.end()) ends.push_back(end);
  return place;
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
  const std::vector<double>& converted =
      mesh_costs.conversion_seconds(edge.value, start.layout, edge.in_bucket);
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
      seconds[to] = edge.is_early && converted[end.layout] < infinity ? 0 : converted[end.layout];
      if (at_end.sums_in_kernel) seconds[to] += option_of(at_end, to, mesh_costs).seconds;
    }
  }
  return seconds;
}

ConversionCases cases_of(const StageVariables& stage, const StageConversion& conversion,
                         const MeshCosts& mesh_costs) {
  const auto& [edge, rest, pieces, held, most_bytes] = conversion;
  ConversionCases made;
  std::vector<EdgeEnd> ends, starts;
  for (std::size_t c = 0; c < stage.variables[edge.to].choices.size(); ++c)
    made.end_of.push_back(place_in(ends, end_of_edge(stage, edge, c, mesh_costs)));
  for (std::size_t c = 0; c < stage.variables[edge.from].choices.size(); ++c)
    made.start_of.push_back(place_in(starts, start_of_edge(stage, edge, c, mesh_costs)));
  std::vector<std::vector<int>> cases_at(2 * ends.size());  // [place]
  for (const EdgeEnd& start : starts) {
    std::vector<int>& of_start = made.case_of.emplace_back(cases_at.size(), -1);
    for (int e = 0; e < static_cast<int>(ends.size()); ++e)
      for (const bool as_made : {false, true}) {
        if (as_made && rest < 0) continue;
        std::vector<std::int64_t> bytes = held(start, ends[e], as_made);
        const std::size_t place = ConversionCases::place(e, as_made);
        const auto known =
            std::ranges::find_if(cases_at[place], [&](int c) { return made.cases[c].bytes == bytes; });
        of_start[place] = known != cases_at[place].end() ? *known : static_cast<int>(made.cases.size());
        if (known != cases_at[place].end()) continue;
        cases_at[place].push_back(of_start[place]);
        made.cases.push_back({e, as_made, std::move(bytes)});
      }
  }
  return made;
}

}  // namespace alpa
