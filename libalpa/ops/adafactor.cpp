#include "libalpa/ops/adafactor.h"

#include <fmt/core.h>

#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa::ops {
namespace {

/// The dimensions of a tensor of that rank, but for one.
std::string dimensions_without(std::int64_t left_out, std::size_t rank) {
  std::string text;
  for (std::size_t d = 0; d < rank; ++d)
    if (static_cast<std::int64_t>(d) != left_out) text += fmt::format("d{} ", d);
  return text;
}

std::string all_dimensions(std::size_t rank) { return dimensions_without(-1, rank); }

/// What there is one of for each row and one of for each column.
std::string of_rows_and_columns(Factoring of, std::size_t rank) {
  return dimensions_without(of.columns, rank) + ", " + dimensions_without(of.rows, rank);
}

std::string scales_of(const OpCall& call, std::size_t rank) {
  const Factoring factoring = Factoring::of(call.attributes);
  return factoring.exists() ? of_rows_and_columns(factoring, rank) : all_dimensions(rank);
}

ShardingRule adafactor_sums_rule(const OpCall& call) {
  const std::size_t rank = call.operands[0].shape.size();
  return parse_rule(all_dimensions(rank) + "->" + of_rows_and_columns(Factoring::of(call.attributes), rank),
                    call.operands);
}

/// The mean of R takes all rows, and short vectors are not worth splitting.
ShardingRule adafactor_factors_rule(const OpCall& call) {
  const std::size_t rank = call.operands[0].shape.size() + 1;
  const Factoring factoring = Factoring::of(call.attributes);
  const std::string vectors = of_rows_and_columns(factoring, rank);
  return parse_rule(vectors + ", " + vectors + ", k, -> " + vectors + ", " + vectors +
                        fmt::format("| whole k d{} d{}", factoring.rows, factoring.columns),
                    call.operands);
}

ShardingRule adafactor_squares_rule(const OpCall& call) {
  const std::size_t rank = call.operands[0].shape.size();
  const std::string whole = all_dimensions(rank);
  return parse_rule(whole + ", " + whole + ", " + scales_of(call, rank) + "-> q | whole q", call.operands,
                    size_attributes(call.attributes));
}

ShardingRule adafactor_rule(const OpCall& call) {
  const std::size_t rank = call.operands[0].shape.size();
  const std::string whole = all_dimensions(rank);
  return parse_rule(
      whole + ", " + whole + ", q, k, , " + scales_of(call, rank) + "->" + whole + "| whole q k",
      call.operands);
}

ShardingRule adafactor_master_rule(const OpCall& call) {
  const std::size_t rank = call.operands[0].shape.size();
  const std::string whole = all_dimensions(rank);
  return parse_rule(whole + ", " + whole + ", " + whole + ", q, k, , " + scales_of(call, rank) + "->" +
                        whole + ", " + whole + "| whole q k",
                    call.operands);
}

template <int per_element>
double flops_of_elements(const OpCall& call) {
  return per_element * static_cast<double>(element_count(call.operands[0].shape));
}

std::int64_t column_sums_workspace(const OpCall& call) {
  const FactoredExtents extents(call.operands[0].shape, Factoring::of(call.attributes));
  return column_sum_bytes(extents.rows, extents.width());
}

/// Two sums.
std::int64_t squares_workspace(const OpCall& call) {
  return 2 * double_sum_bytes({call.operands.first(1), call.attributes});
}

}  // namespace

// gradient -> sums of its squares over columns, over rows.
constinit const OpDef adafactor_sums{
    .name = "adafactor_sums",
    .rule = "",
    .make_rule = adafactor_sums_rule,
    .result_types = "f32,f32",
    .flops = flops_of_elements<3>,
    .cuda_workspace_bytes = column_sums_workspace,
    .internal = true,
};

// (R, C, row sums, column sums, scalars, squared norm) -> R, C, row scale, column scale; the scales hold what
// the gradient is clipped by. Attribute `clip`, scalars and squared norm: as of adamw.
constinit const OpDef adafactor_factors{
    .name = "adafactor_factors",
    .rule = "",
    .make_rule = adafactor_factors_rule,
    .flops_per_point = 10,
    .overwrites = {0, 1, -1, -1},
    .internal = true,
    .untimed = "clip",
};

// (V, gradient, scalars, squared norm) -> V, scale: as adafactor_factors where nothing is factored.
constinit const OpDef adafactor_moment{
    .name = "adafactor_moment",
    .rule = "..., ..., k, -> ..., ... | whole k",
    .flops_per_point = 10,
    .overwrites = {0, -1, -1, -1},
    .internal = true,
    .untimed = "clip",
};

// (weights, gradient, scales) -> sums of U^2 and of the squares of the weights (`size_q` = 2).
constinit const OpDef adafactor_squares{
    .name = "adafactor_squares",
    .rule = "",
    .make_rule = adafactor_squares_rule,
    .result_types = "f32",
    .flops = flops_of_elements<6>,
    .cuda_workspace_bytes = squares_workspace,
    .internal = true,
};

// (weights, gradient, squares, scalars, squared norm, scales) -> weights. Attributes `elements` (of the whole
// parameter) and `weight_decay`.
constinit const OpDef adafactor{
    .name = "adafactor",
    .rule = "",
    .make_rule = adafactor_rule,
    .flops = flops_of_elements<6>,
    .overwrites = {0, -1, -1, -1},
    .internal = true,
    .untimed = "elements weight_decay",
};

// As adafactor on the f32 master weights, and rounds them to the working weights (second operand and result).
constinit const OpDef adafactor_master{
    .name = "adafactor_master",
    .rule = "",
    .make_rule = adafactor_master_rule,
    .flops = flops_of_elements<6>,
    .overwrites = {0, 1, -1, -1},
    .internal = true,
    .untimed = "elements weight_decay",
};

}  // namespace alpa::ops
