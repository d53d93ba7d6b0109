#include "libalpa/sharding/strategy.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

namespace alpa {
namespace {

const Factor& factor_of(const ShardingRule& rule, int factor) { return rule.factors[factor]; }

/// Whether an axis that is given this choice splits the factor; a ring splits two.
bool splits(const ShardingRule& rule, int choice, int factor) {
  return choice >= 0 && (choice == factor || factor_of(rule, choice).ring == factor);
}

bool is_possible(const ShardingRule& rule, const Strategy& strategy, const MeshShape& mesh) {
  int rings = 0;
  for (const int choice : strategy) rings += choice >= 0 && factor_of(rule, choice).ring >= 0;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    std::int64_t parts = 1;
    for (std::size_t axis = 0; axis < strategy.size(); ++axis)
      if (splits(rule, strategy[axis], f)) parts *= mesh[axis];
    if (factor_of(rule, f).size % parts != 0) return false;
  }
  return rings <= 1;
}

ShardingSpec spec_under(const ShardingRule& rule, const std::vector<DimensionFactors>& dimensions,
                        const Strategy& strategy) {
  ShardingSpec spec = replicated_spec(dimensions.size());
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    for (const int factor : dimensions[d])
      for (int axis = 0; axis < static_cast<int>(strategy.size()); ++axis)
        if (splits(rule, strategy[axis], factor)) spec.axes[d].push_back(axis);
  return spec;
}

void mark_partial(const OpDef& op, const ShardingRule& rule, const Strategy& strategy, NodeLayout& layout) {
  for (int axis = 0; axis < static_cast<int>(strategy.size()); ++axis) {
    const int choice = strategy[axis];
    const std::uint32_t bit = 1u << axis;
    if (choice == kPassPartialAxis) {
      const std::size_t through = std::min(op.linear_operands, layout.operands.size());
      for (std::size_t i = 0; i < through; ++i) layout.operands[i].partial_sum |= bit;
      for (ShardingSpec& result : layout.results) result.partial_sum |= bit;
    }
    if (choice < 0 || factor_of(rule, choice).ring >= 0) continue;  // a ring leaves nothing to be summed
    for (int r = 0; r < static_cast<int>(layout.results.size()); ++r)
      if (rule.reduces(r, choice)) {
        ShardingSpec& result = layout.results[r];
        (factor_of(rule, choice).maximum ? result.partial_max : result.partial_sum) |= bit;
      }
  }
}

}  // namespace

bool can_split(const ShardingRule& rule, int factor) {
  const Factor& f = factor_of(rule, factor);
  if (f.whole || f.size == 1) return false;
  const auto inner = [&](const std::vector<std::vector<DimensionFactors>>& tensors) {
    for (const auto& tensor : tensors)
      for (const DimensionFactors& dimension : tensor) {
        std::int64_t outer = 1;
        for (const int g : dimension) {
          if (g == factor && outer > 1) return true;
          outer *= factor_of(rule, g).size;
        }
      }
    return false;
  };
  return !inner(rule.operands) && !inner(rule.results);
}

std::vector<Strategy> strategies(const OpDef& op, const OpCall& whole, const MeshShape& mesh) {
  std::vector<Strategy> found{Strategy(mesh.size(), kIdleAxis)};
  if (op.reduces_globally) return found;
  const ShardingRule rule = rule_of(op, whole);
  std::vector<int> choices;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f)
    if (can_split(rule, f)) choices.push_back(f);
  if (op.linear_operands > 0) choices.push_back(kPassPartialAxis);
  for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
    const std::size_t known = found.size();
    for (std::size_t s = 0; s < known; ++s)
      for (const int choice : choices) {
        Strategy next = found[s];
        next[axis] = choice;
        if (is_possible(rule, next, mesh)) found.push_back(std::move(next));
      }
  }
  return found;
}

NodeLayout layout_of(const OpDef& op, const OpCall& whole, const Strategy& strategy, const MeshShape& mesh) {
  assert(strategy.size() == mesh.size());
  const ShardingRule rule = rule_of(op, whole);
  NodeLayout layout;
  layout.local_attributes = whole.attributes;
  for (const auto& dimensions : rule.operands)
    layout.operands.push_back(spec_under(rule, dimensions, strategy));
  for (const auto& dimensions : rule.results)
    layout.results.push_back(spec_under(rule, dimensions, strategy));
  mark_partial(op, rule, strategy, layout);
  for (std::size_t i = 0; i < layout.operands.size(); ++i)
    layout.local_operands.push_back(tile_type(whole.operands[i], layout.operands[i], mesh));
  const std::vector<TensorType> results = result_types(op, whole, rule);
  for (std::size_t r = 0; r < results.size(); ++r)
    layout.local_results.push_back(tile_type(results[r], layout.results[r], mesh));
  for (const auto& [name, size] : size_attributes(whole.attributes)) {
    std::int64_t local = size;
    for (std::size_t axis = 0; axis < mesh.size(); ++axis)
      if (strategy[axis] >= 0 && factor_of(rule, strategy[axis]).name == name) local /= mesh[axis];
    layout.local_attributes.set("size_" + name, local);
  }
  layout.ring = ring_of(rule, strategy, mesh);
  layout.remote_block_attributes = layout.local_attributes;
  if (layout.ring.exists()) layout.remote_block_attributes.set("visiting", std::int64_t{1});
  return layout;
}

std::string strategy_text(const OpDef& op, const OpCall& whole, const Strategy& strategy) {
  std::string text;
  const ShardingRule rule = rule_of(op, whole);
  for (std::size_t axis = 0; axis < strategy.size(); ++axis) {
    if (strategy[axis] == kIdleAxis) continue;
    if (!text.empty()) text += ' ';
    const Factor* factor = strategy[axis] >= 0 ? &factor_of(rule, strategy[axis]) : nullptr;
    text += fmt::format("{}{}:{}", factor && factor->ring >= 0 ? "ring " : "", factor ? factor->name : "sum",
                        axis);
  }
  return text.empty() ? "whole" : text;
}

}  // namespace alpa
