#include <fmt/core.h>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa::ops {
namespace {

ShardingRule sum_squares_rule(const OpCall& call) {
  std::string notation;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    notation += i ? ", " : "";
    for (std::size_t d = 0; d < call.operands[i].shape.size(); ++d) notation += fmt::format("x{}_{} ", i, d);
  }
  return parse_rule(notation + "->", call.operands);
}

double sum_squares_flops(const OpCall& call) {
  double flops = 0;
  for (const TensorType& type : call.operands) flops += 2.0 * static_cast<double>(element_count(type.shape));
  return flops;
}

constexpr OpDef adamw_of(std::string_view name, std::string_view rule, std::array<int, 4> overwrites) {
  return {
      .name = name,
      .rule = rule,
      .flops_per_point = 15,
      .overwrites = overwrites,
      .internal = true,
      .untimed = "beta1 beta2 clip epsilon weight_decay",
  };
}

constexpr OpDef sgd_of(std::string_view name, std::string_view rule, std::array<int, 4> overwrites) {
  return {
      .name = name,
      .rule = rule,
      .flops_per_point = 6,
      .overwrites = overwrites,
      .internal = true,
      .untimed = "clip momentum nesterov weight_decay",
  };
}

}  // namespace

// Sum over micro-batches, in f32. The first micro-batch of a step overwrites, the others add.
constinit const OpDef accumulate{
    .name = "accumulate",
    .rule = "... -> ...",
    .result_types = "f32",
    .linear_operands = 1,
    .sums_micro_batches = true,
    .accumulates = true,
    .internal = true,
};

// The same in the type of what is summed.
constinit const OpDef accumulate_rounded{
    .name = "accumulate_rounded",
    .rule = "... -> ...",
    .linear_operands = 1,
    .sums_micro_batches = true,
    .accumulates = true,
    .internal = true,
};

// A gradient, for the next step.
constinit const OpDef held_back{
    .name = "held_back",
    .rule = "... -> ...",
    .linear_operands = 1,
    .flops_per_point = 0,
    .holds_gradient_back = true,
    .internal = true,
};

// Squared global norm of all gradients, over all stages; attribute `weight` is set by lowering (1 /
// replicas).
constinit const OpDef sum_squares{
    .name = "sum_squares",
    .rule = "",
    .make_rule = sum_squares_rule,
    .result_types = "f32",
    .flops = sum_squares_flops,
    .cuda_workspace_bytes = double_sum_bytes,
    .reduces_globally = true,
    .accumulates = true,
    .internal = true,
    .untimed = "weight",
};

// AdamW (Loshchilov and Hutter, ICLR'19), gradient divided by the loss scale and clipped to a global norm of
// `clip` first (0: not): (weights, gradient, moment1, moment2, scalars, squared norm) -> weights, moment1,
// moment2. scalars are InputKind::update_scalars; the squared norm is that of the gradient as it is, times
// the loss scale. Where it is not finite, this and the other updates change nothing.
// Updates that do not wait for it (GraphUses::updates_wait) get 0.
constinit const OpDef adamw =
    adamw_of("adamw", "..., ..., ..., ..., c, -> ..., ..., ... | whole c", {0, 2, 3, -1});

// As adamw on the f32 master weights, and rounds them to the working weights (last operand and result, bf16).
constinit const OpDef adamw_master =
    adamw_of("adamw_master", "..., ..., ..., ..., c, , ... -> ..., ..., ..., ... | whole c", {0, 2, 3, 6});

// Momentum: g = gradient + weight_decay * w; v = momentum * v + g; w -= learning rate * v, or with `nesterov`
// (Nesterov's accelerated gradient, as Sutskever et al., 2013, write it) w -= learning rate * (momentum * v +
// g): (weights, gradient, momentum, scalars, squared norm) -> weights, momentum.
constinit const OpDef sgd = sgd_of("sgd", "..., ..., ..., c, -> ..., ... | whole c", {0, 2, -1, -1});

constinit const OpDef sgd_master =
    sgd_of("sgd_master", "..., ..., ..., c, , ... -> ..., ..., ... | whole c", {0, 2, 5, -1});

}  // namespace alpa::ops
