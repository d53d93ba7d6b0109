#include "libalpa/planner/stage/stage_sums.h"

#include <algorithm>

namespace alpa {

void add_sums_of_step(const StageScope& scope, const MeshCosts& mesh_costs, StageVariables& stage) {
  if (stage.variables.empty()) return;  // layers may have no nodes
  const Graph& graph = scope.graph();
  StageVariable& any = stage.variables.front();
  const GraphUses& uses = scope.planning().uses;
  const bool has_stand_in = uses.norm >= 0 && !scope.planning().updates_wait();  // for the norm, in updates
  for (std::int64_t& bytes : any.resident)
    bytes += buffer_bytes(TensorType{DType::f32, {2 + std::ssize(graph.metrics) + (has_stand_in ? 1 : 0)}});
  const double zero_s = mesh_costs.costs().copy_seconds(static_cast<double>(byte_count({DType::f32, {}})));
  const auto start_as_zero = [&] {  // whatever is chosen
    for (std::size_t c = 0; c < any.choices.size(); ++c) any.pay_once(c, zero_s);
  };
  const auto add_sum = [&](const std::vector<ValueIndex>& values) {
    bool made = false;
    for (const ValueIndex v : values) {
      if (!scope.makes(v)) continue;
      made = true;
      StageVariable& maker = stage.variables[stage.of_node.at(scope.canonical_node(scope.value(v).producer))];
      for (std::size_t c = 0; c < maker.choices.size(); ++c) maker.pay_once(c, mesh_costs.sum_seconds(v));
    }
    if (!made) start_as_zero();
  };
  add_sum({graph.loss});
  for (const Metric& metric : graph.metrics) add_sum(metric.values);
  const bool has_gradients =
      std::ranges::any_of(scope.nodes(), [&](NodeIndex n) { return !uses.measured[n].empty(); });
  if (!has_gradients) start_as_zero();
  if (has_stand_in) start_as_zero();
}

void add_workspace_of_sums(const StageScope& scope, const MeshCosts& mesh_costs, const StageClock& clock,
                           StageVariables& stage) {
  std::vector<ValueIndex> summed{scope.graph().loss};
  for (const Metric& metric : scope.graph().metrics)
    summed.insert(summed.end(), metric.values.begin(), metric.values.end());
  const int tick = clock.begin(Phase::update);
  for (const ValueIndex v : summed) {
    if (!scope.makes(v)) continue;
    const NodeIndex n = scope.value(v).producer;
    const Node& maker = scope.node(n);
    StageVariable& of = stage.variables[stage.of_node.at(scope.canonical_node(n))];
    const auto result = static_cast<std::size_t>(place_of(maker.results, v));
    SelectionProblem::Memory memory{tick, tick + 1, {}};
    for (std::size_t c = 0; c < of.choices.size(); ++c)
      memory.bytes.push_back(
          mesh_costs.workspace_of_one(*maker.op, v, option_of(of, c, mesh_costs).results[result]));
    of.hold(std::move(memory));
  }
}

}  // namespace alpa
