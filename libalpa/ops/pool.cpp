#include <fmt/core.h>

#include <string>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/window.h"

namespace alpa::ops {
namespace {

/// The rule for images of height h and width w, whose channels are pooled one by one.
ShardingRule pool_rule(const std::string& notation, const OpCall& call, std::int64_t h, std::int64_t w) {
  const std::array<Window, 2> windows = windows_of(call.attributes);
  for (const Window& window : windows)
    if (2 * window.padding > window.size)
      throw Error(ErrorKind::input, fmt::format("padding is {}, expected at most half of the window of {}",
                                                window.padding, window.size));
  return parse_rule(notation + " | whole h w y z", call.operands,
                    {{"h", h}, {"w", w}, {"y", windows[0].places(h)}, {"z", windows[1].places(w)}});
}

bool is_image(const OpCall& call, std::size_t operand) {
  return call.operands.size() > operand && call.operands[operand].shape.size() == 4;
}

ShardingRule forward_rule(const OpCall& call) {
  if (!is_image(call, 0)) return parse_rule("n h w c -> n h w c", call.operands);
  const Shape& x = call.operands[0].shape;
  return pool_rule("n h w c -> n y z c", call, x[1], x[2]);
}

ShardingRule max_pool_grad_rule(const OpCall& call) {
  if (!is_image(call, 1)) return parse_rule("n y z c, n h w c -> n h w c", call.operands);
  const Shape& x = call.operands[1].shape;
  return pool_rule("n y z c, n h w c -> n h w c", call, x[1], x[2]);
}

ShardingRule average_pool_grad_rule(const OpCall& call) {
  return pool_rule("n y z c -> n h w c", call, call.attributes.integer("size_h"),
                   call.attributes.integer("size_w"));
}

std::vector<ValueIndex> max_pool_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  return {g.add("max_pool_grad", {dy[0], node.operands[0]}, node.attributes, node.name + ".grad")};
}

std::vector<ValueIndex> average_pool_gradient(GraphBuilder& g, const Node& node,
                                              std::span<const ValueIndex> dy) {
  const Shape x = g.type(node.operands[0]).shape;
  Attributes attributes = node.attributes;
  attributes.set("size_h", x[1]);
  attributes.set("size_w", x[2]);
  return {g.add("average_pool_grad", {dy[0]}, attributes, node.name + ".grad")};
}

/// Every place of the result meets every element of the window.
double pool_flops(const TensorType& y, const Attributes& attributes) {
  const std::array<Window, 2> windows = windows_of(attributes);
  return static_cast<double>(element_count(y.shape) * windows[0].size * windows[1].size);
}
double forward_flops(const OpCall& call) {
  return pool_flops({DType::f32, result_shape(forward_rule(call), 0)}, call.attributes);
}
double gradient_flops(const OpCall& call) { return pool_flops(call.operands[0], call.attributes); }
double max_gradient_flops(const OpCall& call) { return 2 * gradient_flops(call); }

/// For each element of the result, which of its window is the largest.
std::int64_t places_of_maxima(const OpCall& call) {
  return element_count(call.operands[0].shape) * static_cast<std::int64_t>(sizeof(std::int32_t));
}

ShardingRule upsample_rule(const OpCall& call) {
  const std::int64_t factor = call.attributes.integer("factor");
  if (factor < 1) throw Error(ErrorKind::input, fmt::format("factor is {}, expected 1 or more", factor));
  return parse_rule("n h w c -> n (h r) (w s) c | whole h w r s", call.operands,
                    {{"r", factor}, {"s", factor}});
}

/// The sum over each window of repeated elements.
std::vector<ValueIndex> upsample_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const std::int64_t factor = node.attributes.integer("factor");
  const ValueIndex average =
      g.add("average_pool", {dy[0]}, {{"window", factor}, {"stride", factor}}, node.name + ".grad");
  return {g.add("scale", {average}, {{"factor", static_cast<double>(factor * factor)}})};
}

constexpr std::string_view kSettings =
    "window:integer window_h:integer? window_w:integer? stride:integer? stride_h:integer? stride_w:integer? "
    "padding:count? padding_h:count? padding_w:count?";

}  // namespace

// x [n h w c] -> the largest of each window [n y z c]; padding never is.
constinit const OpDef max_pool{
    .name = "max_pool",
    .rule = "",
    .make_rule = forward_rule,
    .flops = forward_flops,
    .gradient = max_pool_gradient,
    .settings = kSettings,
};

// (dy, x) -> dx: dy of a window goes to the first of its elements that is its largest.
constinit const OpDef max_pool_grad{
    .name = "max_pool_grad",
    .rule = "",
    .make_rule = max_pool_grad_rule,
    .linear_operands = 1,
    .flops = max_gradient_flops,
    .cpu_workspace_bytes = places_of_maxima,
    .internal = true,
};

// x [n h w c] -> the mean of each window [n y z c]; padding counts as zeros.
constinit const OpDef average_pool{
    .name = "average_pool",
    .rule = "",
    .make_rule = forward_rule,
    .linear_operands = 1,
    .flops = forward_flops,
    .gradient = average_pool_gradient,
    .settings = kSettings,
};

// dy -> dx
constinit const OpDef average_pool_grad{
    .name = "average_pool_grad",
    .rule = "",
    .make_rule = average_pool_grad_rule,
    .linear_operands = 1,
    .flops = gradient_flops,
    .internal = true,
};

// x [n h w c] -> [n (h r) (w s) c], each element repeated `factor` times down and across.
constinit const OpDef upsample{
    .name = "upsample",
    .rule = "",
    .make_rule = upsample_rule,
    .linear_operands = 1,
    .flops_per_point = 0,
    .gradient = upsample_gradient,
    .settings = "factor:integer",
};

}  // namespace alpa::ops
