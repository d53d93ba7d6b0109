#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/cuda_workspace.h"

namespace alpa::ops {
namespace {

std::vector<ValueIndex> layer_norm_gradient(GraphBuilder& g, const Node& node,
                                            std::span<const ValueIndex> dy) {
  return g.add_all("layer_norm_grad",
                   {dy[0], node.operands[0], node.operands[1], node.results[1], node.results[2]}, {},
                   node.name + ".grad");
}

std::vector<ValueIndex> rms_norm_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return g.add_all("rms_norm_grad", {dy[0], node.operands[0], node.operands[1], node.results[1]}, {},
                   node.name + ".grad");
}

/// Of gains or biases, over the rows of dy.
std::int64_t gradient_sums(const OpCall& call) {
  const Shape& shape = call.operands[0].shape;
  return column_sum_bytes(element_count(shape) / shape.back(), shape.back());
}

}  // namespace

// (x, gain, bias) -> y, mean, 1/deviation, over the last dimension; attribute `epsilon`.
constinit const OpDef layer_norm{
    .name = "layer_norm",
    .rule = "... d, d, d -> ... d, ..., ... | whole d",
    .result_types = "same,f32,f32",
    .flops_per_point = 8,
    .gradient = layer_norm_gradient,
    .settings = "epsilon:positive",
    .untimed = "epsilon",
};

// (dy, x, gain, mean, 1/deviation) -> dx, dgain, dbias
constinit const OpDef layer_norm_grad{
    .name = "layer_norm_grad",
    .rule = "... d, ... d, d, ..., ... -> ... d, d, d | whole d",
    .flops_per_point = 14,
    .cuda_workspace_bytes = [](const OpCall& call) { return 2 * gradient_sums(call); },
    .internal = true,
};

// (dy, x, gain, mean, 1/deviation, z) -> dx + z, dgain, dbias: z is what a residual hands on beside the norm.
constinit const OpDef layer_norm_grad_add{
    .name = "layer_norm_grad_add",
    .rule = "... d, ... d, d, ..., ..., ... d -> ... d, d, d | whole d",
    .flops_per_point = 15,
    .cuda_workspace_bytes = [](const OpCall& call) { return 2 * gradient_sums(call); },
    .fuses = "layer_norm_grad add",
    .internal = true,
};

// (x, gain) -> y, 1/root-mean-square; attribute `epsilon`.
constinit const OpDef rms_norm{
    .name = "rms_norm",
    .rule = "... d, d -> ... d, ... | whole d",
    .result_types = "same,f32",
    .flops_per_point = 5,
    .gradient = rms_norm_gradient,
    .settings = "epsilon:positive",
    .untimed = "epsilon",
};

// (dy, x, gain, 1/rms) -> dx, dgain
constinit const OpDef rms_norm_grad{
    .name = "rms_norm_grad",
    .rule = "... d, ... d, d, ... -> ... d, d | whole d",
    .flops_per_point = 10,
    .cuda_workspace_bytes = gradient_sums,
    .internal = true,
};

// (dy, x, gain, 1/rms, z) -> dx + z, dgain
constinit const OpDef rms_norm_grad_add{
    .name = "rms_norm_grad_add",
    .rule = "... d, ... d, d, ..., ... d -> ... d, d | whole d",
    .flops_per_point = 11,
    .cuda_workspace_bytes = gradient_sums,
    .fuses = "rms_norm_grad add",
    .internal = true,
};

}  // namespace alpa::ops
