#include "libalpa/graph/vertex_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <numeric>
#include <sstream>

namespace alpa {
namespace {

constexpr const char *kOperand = "row_operand", *kGroup = "row_group", *kTypical = "typical_rows",
                     *kTypicalRounds = "typical_rounds";

}  // namespace

std::optional<VertexRows> vertex_rows_of(const Attributes& attributes) {
  if (!attributes.has(kGroup)) return std::nullopt;
  return VertexRows{static_cast<int>(attributes.integer(kOperand)), attributes.integer(kGroup),
                    attributes.integer(kTypical)};
}

void set_vertex_rows(Attributes& attributes, const VertexRows& rows) {
  attributes.set(kOperand, std::int64_t{rows.operand});
  attributes.set(kGroup, rows.group);
  attributes.set(kTypical, rows.typical);
}

Attributes without_vertex_rows(Attributes attributes) {
  for (const char* name : {kOperand, kGroup, kTypical}) attributes.erase(name);
  return attributes;
}

bool RowFactors::lead(const std::vector<DimensionFactors>& tensor) const {
  return tensor.size() >= 2 && tensor[0] == DimensionFactors{samples} &&
         tensor[1] == DimensionFactors{vertices};
}

bool RowFactors::are_in(const DimensionFactors& dimension) const {
  return std::ranges::any_of(dimension, [this](int f) { return f == samples || f == vertices; });
}

std::optional<RowFactors> row_factors(const ShardingRule& rule, int operand) {
  const std::vector<DimensionFactors>& tensor = rule.operands[static_cast<std::size_t>(operand)];
  if (tensor.size() < 2 || tensor[0].size() != 1 || tensor[1].size() != 1) return std::nullopt;
  return RowFactors{tensor[0][0], tensor[1][0]};
}

void split_by_groups(ShardingRule& rule, const VertexRows& rows) {
  const RowFactors factors = row_factors(rule, rows.operand).value();
  Factor& samples = rule.factors[static_cast<std::size_t>(factors.samples)];
  assert(samples.size % rows.group == 0);
  const Factor groups{"groups", samples.size / rows.group};
  samples.size = rows.group;
  samples.whole = rule.factors[static_cast<std::size_t>(factors.vertices)].whole = true;
  const auto index = static_cast<int>(rule.factors.size());
  rule.factors.push_back(groups);
  for (auto* const tensors : {&rule.operands, &rule.results})
    for (std::vector<DimensionFactors>& tensor : *tensors)
      if (factors.lead(tensor)) tensor[0] = {index, factors.samples};
}

std::vector<std::int64_t> typical_rounds_of(const Attributes& attributes) {
  if (!attributes.has(kTypicalRounds)) return {};
  std::istringstream text(attributes.text(kTypicalRounds));
  return {std::istream_iterator<std::int64_t>(text), std::istream_iterator<std::int64_t>()};
}

std::int64_t rows_of(std::span<const std::int64_t> rounds) {
  return std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0});
}

void set_typical_rounds(Attributes& attributes, const std::vector<std::int64_t>& rounds) {
  attributes.set(kTypicalRounds, fmt::format("{}", fmt::join(rounds, " ")));
}

std::vector<std::int64_t> rounds_of_full_groups(const Shape& structure, std::int64_t group) {
  const std::int64_t rows = group * structure[1], children = structure[2] - 1;
  std::vector<std::int64_t> rounds;
  std::int64_t left = rows;
  for (int height = 0; left > 0; ++height) {
    // 51.3, 12.0, 7.8, 5.7, 4.5, 3.7 % of the vertices are of heights 0 to 5.
    const double share = height == 0 ? 0.513 : 0.12 * std::pow(height, -0.7) * std::exp(-0.03 * height);
    const std::int64_t size =
        children == 1 ? group : std::max<std::int64_t>(1, std::llround(share * static_cast<double>(rows)));
    rounds.push_back(std::min(left, size));
    left -= rounds.back();
  }
  return rounds;
}

}  // namespace alpa
