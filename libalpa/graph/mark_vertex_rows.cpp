#include "libalpa/graph/mark_vertex_rows.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "libalpa/graph/vertex_body.h"
#include "libalpa/graph/vertex_rows.h"

namespace alpa {
namespace {

/// They lead the tensor and are nowhere else in it, or not in it at all.
bool fit(const RowFactors& factors, const std::vector<DimensionFactors>& tensor) {
  return std::none_of(tensor.begin() + (factors.lead(tensor) ? 2 : 0), tensor.end(),
                      [&](const DimensionFactors& dimension) { return factors.are_in(dimension); });
}

/// Whether the loops over samples and vertices may run over any of them.
bool runs_over_any(const ShardingRule& rule, const RowFactors& factors, const Attributes& attributes) {
  const std::map<std::string, std::int64_t> sizes = size_attributes(attributes);
  for (const int f : {factors.samples, factors.vertices}) {
    const Factor& factor = rule.factors[static_cast<std::size_t>(f)];
    if (factor.whole || factor.maximum || factor.ring >= 0 || sizes.contains(factor.name)) return false;
  }
  return std::ranges::none_of(rule.factors, [&](const Factor& factor) {
    return factor.ring == factors.samples || factor.ring == factors.vertices;
  });
}

/// Notes which nodes of a graph go by the rows that are there.
class RowMarks {
 public:
  RowMarks(Graph graph, std::int64_t group, std::vector<std::int64_t> typical)
      : graph_(std::move(graph)),
        group_(group),
        typical_(std::move(typical)),
        has_rows_(graph_.values.size(), false) {
    for (const Input& input : graph_.inputs)
      if (input.kind == InputKind::vertices) has_rows_[input.value] = true;
  }

  Graph run() {
    for (Node& node : graph_.nodes)
      if (node.op->runs_rounds)
        note_rounds(node);
      else
        note_rows(node);
    return std::move(graph_);
  }

 private:
  void note_rounds(Node& node) {
    const Shape& structure =
        value_of(graph_, node.operands[static_cast<std::size_t>(node.op->ids)]).type.shape;
    const std::vector<std::int64_t> rounds =
        typical_.empty() ? rounds_of_full_groups(structure, group_) : typical_;
    set_typical_rounds(node.attributes, rounds);
    for (const ValueIndex result : node.results)
      has_rows_[result] = !is_sum_over_rows(graph_.values[result].type);
  }

  void note_rows(Node& node) {
    const auto first =
        std::ranges::find_if(node.operands, [this](ValueIndex operand) { return has_rows_[operand]; });
    if (first == node.operands.end() || node.op->joins_rows || node.op->reduces_globally) return;
    const std::vector<TensorType> types = operand_types(graph_, node);
    const ShardingRule rule = rule_of(*node.op, {types, node.attributes});
    const auto operand = static_cast<int>(first - node.operands.begin());
    const std::optional<RowFactors> factors = row_factors(rule, operand);
    if (!factors || !runs_over_any(rule, *factors, node.attributes)) return;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (!fit(*factors, rule.operands[i]) || factors->lead(rule.operands[i]) != has_rows_[node.operands[i]])
        return;
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (!fit(*factors, rule.results[r]) || node.op->overwritten(r) >= 0) return;
      // Sums over rows are made group by group.
      if (!factors->lead(rule.results[r]) && !(node.results.size() == 1 && node.op->accumulates)) return;
    }
    for (std::size_t r = 0; r < node.results.size(); ++r)
      has_rows_[node.results[r]] = factors->lead(rule.results[r]);
    const std::int64_t room = group_ * types[static_cast<std::size_t>(operand)].shape[1];
    const std::int64_t taken = typical_.empty() ? room : std::min(room, rows_of(typical_));
    set_vertex_rows(node.attributes, {operand, group_, taken});
  }

  Graph graph_;
  std::int64_t group_;
  std::vector<std::int64_t> typical_;
  Indexed<ValueIndex, bool> has_rows_;
};

}  // namespace

Graph with_vertex_rows(Graph graph, std::int64_t group, std::vector<std::int64_t> typical) {
  return RowMarks(std::move(graph), group, std::move(typical)).run();
}

VertexInputs vertex_inputs(const Graph& graph) {
  assert(graph.inputs.front().kind == InputKind::vertices && "tokens, labels and structure");
  const Shape& structure = value_of(graph, graph.inputs[2].value).type.shape;
  return {graph.inputs[0].below, graph.inputs[1].below, structure[2] - 1, structure[1]};
}

}  // namespace alpa
