#include "libalpa/graph/low_rank.h"

#include <fmt/core.h>

#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa::ops {
namespace {

/// A tensor of that rank with its dimensions in two groups, of which the attribute `rows` has the first.
struct Groups {
  std::string rows, columns;

  Groups(std::size_t rank, const Attributes& attributes) {
    const auto leading = static_cast<std::size_t>(attributes.integer("rows"));
    for (std::size_t d = 0; d < rank; ++d) (d < leading ? rows : columns) += fmt::format("d{} ", d);
  }
  std::string whole() const { return rows + columns; }
};

bool is_transposed(const Attributes& attributes) { return attributes.integer("transposed", 0) != 0; }

/// The columns of a factor are few, and stay together.
ShardingRule low_rank_product_rule(const OpCall& call) {
  const Groups of(call.operands[0].shape.size(), call.attributes);
  const bool transposed = is_transposed(call.attributes);
  return parse_rule(of.whole() + ", " + of.whole() + ", " + (transposed ? of.rows : of.columns) + "k -> " +
                        (transposed ? of.columns : of.rows) + "k | whole k",
                    call.operands);
}

ShardingRule error_feedback_rule(const OpCall& call) {
  const Groups of(call.operands[0].shape.size(), call.attributes);
  return parse_rule(of.whole() + ", " + of.whole() + ", " + of.columns + "k, " + of.rows + "k -> " +
                        of.whole() + "| whole k",
                    call.operands);
}

/// What a column is goes by all of it.
ShardingRule whole_factors_rule(const OpCall& call) {
  std::string factor;
  for (std::size_t d = 0; d < call.operands[0].shape.size(); ++d) factor += fmt::format("d{} ", d);
  std::string operands = factor;
  for (std::size_t i = 1; i < call.operands.size(); ++i) operands += ", " + factor;
  return parse_rule(operands + "-> " + factor + "| whole " + factor, call.operands);
}

/// Each column twice against all before it.
double orthonormal_flops(const OpCall& call) {
  const Shape& shape = call.operands[0].shape;
  return 4.0 * static_cast<double>(element_count(shape)) * static_cast<double>(shape.back());
}

/// The factor column by column, and an f64 number for each of these.
std::int64_t orthonormal_bytes(const OpCall& call) {
  return byte_count(call.operands[0]) + call.operands[0].shape.back() * std::int64_t{sizeof(double)};
}

std::int64_t negated_factor_bytes(const OpCall& call) { return byte_count(call.operands[2]); }

}  // namespace

// (gradient G, error E, factor F) -> (G + E) F, with `transposed` = 1 (G + E)^T F.
constinit const OpDef low_rank_product{
    .name = "low_rank_product",
    .rule = "",
    .make_rule = low_rank_product_rule,
    .linear_operands = 2,
    .flops_per_point = 4,
    .cuda_workspace_bytes = [](const OpCall&) { return kMatrixProductBytes; },
    .factors_gradient = true,
    .internal = true,
};

// factor -> its columns made orthonormal, one after another; those that depend on others before become 0.
constinit const OpDef orthonormal_columns{
    .name = "orthonormal_columns",
    .rule = "",
    .make_rule = whole_factors_rule,
    .flops = orthonormal_flops,
    .cuda_workspace_bytes = orthonormal_bytes,
    .internal = true,
};

// (error E, gradient G, right factor N, left factor P) -> E + G - P N^T.
constinit const OpDef error_feedback{
    .name = "error_feedback",
    .rule = "",
    .make_rule = error_feedback_rule,
    .linear_operands = 3,
    .flops_per_point = 2,
    .cpu_workspace_bytes = negated_factor_bytes,
    .overwrites = {0, -1, -1, -1},
    .internal = true,
};

// (factor Q, new one N) -> N, but for its columns of zeros, which are as in Q: else they would stay zeros.
constinit const OpDef renewed_columns{
    .name = "renewed_columns",
    .rule = "",
    .make_rule = whole_factors_rule,
    .overwrites = {0, -1, -1, -1},
    .internal = true,
};

}  // namespace alpa::ops
