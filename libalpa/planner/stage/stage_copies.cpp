#include "libalpa/planner/stage/stage_copies.h"

#include <algorithm>

#include "libalpa/planner/stage/stage_clock.h"

namespace alpa {
namespace {

/// The variable in whose choice a state rests, and in which layout.
struct RestingPlace {
  int variable = 0;
  int result = -1;  ///< of the node that updates it; -1: the variable is that of the value at rest
};

RestingPlace resting_place(const StageScope& scope, const StageVariables& stage, const State& state) {
  if (state.is_parameter) return {stage.of_value.at(scope.canonical_value(state.value))};
  const NodeIndex update = scope.value(state.next).producer;
  return {stage.of_node.at(scope.canonical_node(update)), place_of(scope.node(update).results, state.next)};
}

}  // namespace

void add_copies_of_states(const StageScope& scope, const MeshCosts& mesh_costs, StageVariables& stage) {
  if (!scope.planning().corrects_updates()) return;
  const StageClock clock(scope);
  int begin = clock.end();  // of the first update
  for (const NodeIndex n : scope.order(Phase::update))
    if (n > scope.planning().uses.norm && scope.canonical_node(n) == n)
      begin = std::min(begin, clock.starts(n, Phase::update, 0));
  std::map<int, SelectionProblem::Memory> copies;  // by variable
  for (const ValueIndex v : scope.values()) {
    if (scope.value(v).kind != ValueKind::state || !scope.updates(v)) continue;
    const State& state = scope.graph().states[scope.planning().uses.state_at[v]];
    if (state.next >= 0 && scope.value(state.next).producer < scope.planning().uses.norm) continue;
    const auto [index, result] = resting_place(scope, stage, state);
    StageVariable& of = stage.variables[index];
    SelectionProblem::Memory& held = copies[index];
    held.begin = begin;
    held.end = clock.end();
    held.bytes.resize(of.choices.size());
    const LayoutTable& layouts = mesh_costs.layouts(v);
    for (std::size_t c = 0; c < of.choices.size(); ++c) {
      const int layout = result < 0 ? of.choices[c] : option_of(of, c, mesh_costs).results[result];
      held.bytes[c] += layouts.bytes(layout);
      const TensorType tile = tile_type(layouts.whole(), layouts.spec(layout), mesh_costs.mesh());
      of.pay_once(c, mesh_costs.costs().copy_seconds(static_cast<double>(byte_count(tile))));
    }
  }
  for (auto& [index, held] : copies) stage.variables[index].held.push_back(std::move(held));
}

}  // namespace alpa
