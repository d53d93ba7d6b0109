#include "libalpa/graph/dimension_roles.h"

#include <cassert>

namespace alpa {
namespace {

/// The outermost factor of a dimension that has anything to split; -1: it has no factors.
int leading_factor(const ShardingRule& rule, const DimensionFactors& factors) {
  for (const int f : factors)
    if (rule.factors[f].size > 1) return f;
  return factors.empty() ? -1 : factors[0];
}

/// Whether the first dimension of all three tensors of a product with a parameter is one factor.
bool multiplies_experts(const Graph& graph, const Node& node, const ShardingRule& rule) {
  const auto leads = [&](const std::vector<DimensionFactors>& dimensions) {
    return !dimensions.empty() && dimensions[0] == rule.operands[0][0];
  };
  return node.op->is_product && !rule.operands[0].empty() && leads(rule.operands[1]) &&
         leads(rule.results[0]) && value_of(graph, node.operands[1]).kind == ValueKind::state;
}

}  // namespace

std::vector<ShardingRule> node_rules(const Graph& graph) {
  std::vector<ShardingRule> rules;
  for (const Node& node : graph.nodes) {
    const std::vector<TensorType> types = operand_types(graph, node);
    rules.push_back(rule_of(*node.op, {types, node.attributes}));
  }
  return rules;
}

std::vector<std::vector<FactorRole>> factor_roles(const Graph& graph,
                                                  const std::vector<ShardingRule>& rules) {
  std::vector<std::vector<FactorRole>> dimensions(graph.values.size());  // [value][dimension]
  for (const ValueIndex v : graph.values.indices())
    dimensions[v].assign(graph.values[v].type.shape.size(), FactorRole::other);
  for (const Input& input : graph.inputs) {
    auto& roles = dimensions[input.value];
    if (!input.is_of_samples()) continue;
    roles[0] = FactorRole::sample;
    if (input.is_sequence()) roles[1] = FactorRole::sequence;
  }
  std::vector<std::vector<FactorRole>> roles;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    const ShardingRule& rule = rules[n];
    std::vector<FactorRole> of_factor(rule.factors.size(), FactorRole::other);
    for (std::size_t i = 0; i < rule.operands.size(); ++i)
      for (std::size_t d = 0; d < rule.operands[i].size(); ++d) {
        const FactorRole role = dimensions[node.operands[i]][d];
        const int leading = leading_factor(rule, rule.operands[i][d]);
        if (role != FactorRole::other && leading >= 0) of_factor[leading] = role;
      }
    if (multiplies_experts(graph, node, rule)) of_factor[rule.operands[0][0].front()] = FactorRole::expert;
    for (std::size_t f = 0; f < of_factor.size(); ++f)  // what adds experts up has their outputs
      if (of_factor[f] == FactorRole::expert && rule.reduces(0, static_cast<int>(f)))
        of_factor[f] = FactorRole::other;
    for (std::size_t r = 0; r < rule.results.size(); ++r)
      for (std::size_t d = 0; d < rule.results[r].size(); ++d)
        if (const int leading = leading_factor(rule, rule.results[r][d]); leading >= 0)
          dimensions[node.results[r]][d] = of_factor[leading];
    roles.push_back(std::move(of_factor));
  }
  return roles;
}

}  // namespace alpa
