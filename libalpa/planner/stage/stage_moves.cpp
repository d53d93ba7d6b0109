#include "libalpa/planner/stage/stage_moves.h"

#include <algorithm>

#include "libalpa/planner/stage/stage_clock.h"
#include "libalpa/planner/stage/value_times.h"

namespace alpa {

namespace {

/// Of a value that rests as that result of a node, or in a layout of its own.
int layout_of(const StageVariable& variable, std::size_t choice, std::size_t result,
              const MeshCosts& mesh_costs) {
  return variable.node < 0 ? variable.choices[choice]
                           : option_of(variable, choice, mesh_costs).results[result];
}

double move_seconds(const LayoutTable& layouts, int layout, const MeshCosts& mesh_costs) {
  const TensorType tile = tile_type(layouts.whole(), layouts.spec(layout), mesh_costs.mesh());
  return mesh_costs.costs().move_seconds(static_cast<double>(byte_count(tile)));
}

}  // namespace

void add_moves_of_states(const StageScope& scope, const StageRequest& request, const MeshCosts& mesh_costs,
                         StageVariables& stage) {
  const PlanningGraph& planning = scope.planning();
  if (planning.on_host.empty()) return;
  const StageClock clock(scope);
  const ValueTimes times(scope, clock);
  constexpr Phase kUpdate = Phase::update;
  for (const NodeIndex n : scope.canonical_nodes()) {
    const Node& node = scope.node(n);
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const StateIndex index = planning.uses.state_after_value(node.results[r]);
      if (index < 0 || !planning.rests_on_host(scope.graph().states[index].value)) continue;
      const State& state = scope.graph().states[index];
      const StageScope::Use first = times.first_use(state.value, kUpdate);
      SelectionProblem::Memory staged{clock.starts(first.node, kUpdate, first.operand),
                                      clock.settles(n, kUpdate, static_cast<int>(r)) + 1,
                                      {}};
      if (!scope.uses_in(state.next, kUpdate).empty())
        staged.end = std::max(staged.end, clock.runs(times.last_use(state.next, kUpdate).node, kUpdate) + 2);
      StageVariable& of =
          stage.variables[state.is_parameter ? stage.of_value.at(scope.canonical_value(state.value))
                                             : stage.of_node.at(n)];
      double fetches = 0;  // by runs of micro-batches
      for (const Phase phase : {Phase::forward, Phase::backward})
        if (!scope.uses_in(state.value, phase).empty()) fetches += runs_per_step(request, phase);
      const LayoutTable& layouts = mesh_costs.layouts(state.value);
      for (std::size_t c = 0; c < of.choices.size(); ++c) {
        const int layout = layout_of(of, c, r, mesh_costs);
        staged.bytes.push_back(layouts.bytes(layout));
        const double move_s = scope.copies(n) * move_seconds(layouts, layout, mesh_costs);
        of.pay_once(c, 2 * move_s);
        of.cost[c] += fetches * move_s;
      }
      of.held.push_back(std::move(staged));
    }
  }
}

void add_moves_of_activations(const StageScope& scope, const StageRequest& request,
                              const MeshCosts& mesh_costs, StageVariables& stage) {
  for (const ValueIndex v : scope.values()) {
    if (!scope.is_offloaded(v)) continue;
    const LayoutTable& layouts = mesh_costs.layouts(v);
    const auto rest = stage.of_value.find(scope.canonical_value(v));
    const NodeIndex maker = scope.value(v).producer;
    const auto place = static_cast<std::size_t>(place_of(scope.node(maker).results, v));
    StageVariable& of =
        stage.variables[rest != stage.of_value.end() ? rest->second
                                                     : stage.of_node.at(scope.canonical_node(maker))];
    for (std::size_t c = 0; c < of.choices.size(); ++c)
      of.cost[c] += 2 * runs_per_step(request, Phase::forward) *
                    move_seconds(layouts, layout_of(of, c, place, mesh_costs), mesh_costs);
  }
}

}  // namespace alpa
