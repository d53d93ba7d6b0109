#include <algorithm>
#include <array>
#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/convolution_scratch.h"
#include "libalpa/ops/window.h"

namespace alpa::ops {
namespace {

/// The three tensors of a convolution in the notation of rules.
struct Notation {
  std::string x, weight, y, whole;
};

std::int64_t groups_of(const Attributes& attributes) { return attributes.integer("size_g", 1); }

/// Channels of groups are products whose inner factors stay whole; without groups they are factors of their
/// own.
Notation notation_of(const Attributes& attributes) {
  if (groups_of(attributes) == 1) return {"n h w c", "p q c f", "n y z f", " | whole h w p q y z"};
  return {"n h w (g c)", "p q c (g f)", "n y z (g f)", " | whole h w p q y z c f"};
}

bool are_images_and_filters(const OpCall& call) {
  return call.operands.size() == 2 && call.operands[0].shape.size() == 4 &&
         call.operands[1].shape.size() == 4;
}

/// The rule for an image of height h and width w and filters of height p and width q.
ShardingRule image_rule(const std::string& notation, const OpCall& call, std::int64_t h, std::int64_t w,
                        std::int64_t p, std::int64_t q) {
  const std::array<Window, 2> windows = windows_of(call.attributes, p, q);
  return parse_rule(notation, call.operands,
                    {{"h", h},
                     {"w", w},
                     {"p", p},
                     {"q", q},
                     {"y", windows[0].places(h)},
                     {"z", windows[1].places(w)},
                     {"g", groups_of(call.attributes)}});
}

ShardingRule conv2d_rule(const OpCall& call) {
  if (!are_images_and_filters(call)) return parse_rule("n h w c, p q c f -> n h w f", call.operands);
  const Shape &x = call.operands[0].shape, &weight = call.operands[1].shape;
  const Notation n = notation_of(call.attributes);
  return image_rule(n.x + "," + n.weight + "->" + n.y + n.whole, call, x[1], x[2], weight[0], weight[1]);
}

ShardingRule grad_input_rule(const OpCall& call) {
  if (!are_images_and_filters(call)) return parse_rule("n y z f, p q c f -> n y z c", call.operands);
  const Attributes& attributes = call.attributes;
  const Shape& weight = call.operands[1].shape;
  const Notation n = notation_of(attributes);
  return image_rule(n.y + "," + n.weight + "->" + n.x + n.whole, call, attributes.integer("size_h"),
                    attributes.integer("size_w"), weight[0], weight[1]);
}

ShardingRule grad_weight_rule(const OpCall& call) {
  if (!are_images_and_filters(call)) return parse_rule("n h w c, n y z f -> h w c f", call.operands);
  const Attributes& attributes = call.attributes;
  const Shape& x = call.operands[0].shape;
  const Notation n = notation_of(attributes);
  return image_rule(n.x + "," + n.y + "->" + n.weight + n.whole, call, x[1], x[2],
                    attributes.integer("size_p"), attributes.integer("size_q"));
}

std::vector<ValueIndex> conv2d_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  const ValueIndex x = node.operands[0], weight = node.operands[1];
  const Shape image = g.type(x).shape, filter = g.type(weight).shape;
  Attributes of_input = node.attributes, of_weight = node.attributes;
  of_input.set("size_h", image[1]);
  of_input.set("size_w", image[2]);
  of_weight.set("size_p", filter[0]);
  of_weight.set("size_q", filter[1]);
  return {g.add("conv2d_grad_input", {dy[0], weight}, of_input, node.name + ".grad0"),
          g.add("conv2d_grad_weight", {x, dy[0]}, of_weight, node.name + ".grad1")};
}

/// Every place of the result meets every element of a filter; h and w are not looped over beside them.
template <ShardingRule (*rule)(const OpCall&)>
double convolution_flops(const OpCall& call) {
  double points = 1;
  for (const Factor& factor : rule(call).factors)
    if (factor.name != "h" && factor.name != "w") points *= static_cast<double>(factor.size);
  return 2 * points;
}

template <ConvolutionKind kind>
std::int64_t scratch_bytes(const OpCall& call) {
  return convolution_scratch(kind, call).end;
}

constexpr std::int64_t kMostUnfoldedBytes = std::int64_t{4} << 20;

/// A row of the matrix of windows.
std::int64_t unfolded_bytes_of_place(const Shape& weight) {
  return weight[0] * weight[1] * weight[2] * static_cast<std::int64_t>(sizeof(float));
}

/// Whether the windows are better copied to a matrix. With many filters that is little beside the products,
/// which run at full speed, while oneDNN (2.6, AVX-512) reaches half to three quarters of that with filters
/// of one element, for short rows, and in gradients of filters with a stride.
bool is_faster_unfolded(ConvolutionKind kind, const Shape& weight, const Shape& y,
                        const Attributes& attributes) {
  constexpr std::int64_t many_filters = 128, short_row = 8;
  if (groups_of(attributes) > 1 || weight[3] < many_filters) return false;
  // A row of long ones would not stay in a cache.
  if (y[2] > kMostUnfoldedBytes / unfolded_bytes_of_place(weight)) return false;
  const auto windows = windows_of(attributes, weight[0], weight[1]);
  const bool has_stride = windows[0].stride > 1 || windows[1].stride > 1;
  return weight[0] * weight[1] == 1 || y[2] < short_row ||
         (kind == ConvolutionKind::grad_weight && has_stride);
}

/// As many rows at a time as keep it to some MB, in equal parts.
ConvolutionScratch unfolded_scratch(const Shape& weight, const Shape& y) {
  const std::int64_t rows = y[0] * y[1], row_bytes = y[2] * unfolded_bytes_of_place(weight);
  const std::int64_t at_once = std::clamp<std::int64_t>(kMostUnfoldedBytes / row_bytes, 1, rows);
  const std::int64_t parts = (rows + at_once - 1) / at_once;
  ConvolutionScratch s;
  s.unfolded_rows = (rows + parts - 1) / parts;
  s.end = s.unfolded_rows * row_bytes;
  return s;
}

/// oneDNN's blocks of 16 channels (of groups, where a group has one), and a 32nd more in some orders.
/// `weight` is [p q c (g f)].
std::int64_t packed_bytes(const Shape& weight, std::int64_t groups) {
  const auto blocks = [](std::int64_t extent) { return (extent + 15) / 16 * 16; };
  const std::int64_t c = weight[2], f = weight[3] / groups;
  const std::int64_t channels = c == 1 && f == 1 ? blocks(groups) : groups * blocks(c) * blocks(f);
  return static_cast<std::int64_t>(sizeof(float)) * weight[0] * weight[1] * (channels + channels / 32);
}

}  // namespace

// (x [n h w (g c)], weight [p q c (g f)]) -> [n y z (g f)]: each filter slides over the image, whose channels
// come last. The groups g (`size_g`, default 1) are convolved each on its own. Settings: windows_of.
constinit const OpDef conv2d{
    .name = "conv2d",
    .rule = "",
    .make_rule = conv2d_rule,
    .linear_operands = 1,
    .flops = convolution_flops<conv2d_rule>,
    .cpu_workspace_bytes = scratch_bytes<ConvolutionKind::forward>,
    .gradient = conv2d_gradient,
    .settings =
        "size_g:integer? stride:integer? stride_h:integer? stride_w:integer? padding:count? "
        "padding_h:count? padding_w:count? dilation:integer? dilation_h:integer? dilation_w:integer?",
};

// (dy, weight) -> dx
constinit const OpDef conv2d_grad_input{
    .name = "conv2d_grad_input",
    .rule = "",
    .make_rule = grad_input_rule,
    .linear_operands = 1,
    .flops = convolution_flops<grad_input_rule>,
    .cpu_workspace_bytes = scratch_bytes<ConvolutionKind::grad_input>,
    .internal = true,
};

// (x, dy) -> dweight
constinit const OpDef conv2d_grad_weight{
    .name = "conv2d_grad_weight",
    .rule = "",
    .make_rule = grad_weight_rule,
    .flops = convolution_flops<grad_weight_rule>,
    .cpu_workspace_bytes = scratch_bytes<ConvolutionKind::grad_weight>,
    .accumulates = true,
    .internal = true,
};

}  // namespace alpa::ops

namespace alpa {

bool is_matrix_product(const Shape& weight, const Attributes& attributes) {
  const auto windows = windows_of(attributes, weight[0], weight[1]);
  return ops::groups_of(attributes) == 1 && std::ranges::all_of(windows, [](const Window& window) {
           return window.size == 1 && window.stride == 1 && window.padding == 0;
         });
}

ConvolutionScratch convolution_scratch(ConvolutionKind kind, const OpCall& call) {
  const bool of_weight = kind == ConvolutionKind::grad_weight;
  const OpDef& op = of_weight                             ? ops::conv2d_grad_weight
                    : kind == ConvolutionKind::grad_input ? ops::conv2d_grad_input
                                                          : ops::conv2d;
  const Shape result = result_types(op, call)[0].shape;
  const Shape& weight = of_weight ? result : call.operands[1].shape;
  if (is_matrix_product(weight, call.attributes)) return {};
  const bool converts = call.operands[0].dtype != DType::f32;
  if (!converts && kind != ConvolutionKind::grad_input)
    if (const Shape& y = of_weight ? call.operands[1].shape : result;
        ops::is_faster_unfolded(kind, weight, y, call.attributes))
      return ops::unfolded_scratch(weight, y);
  const auto after = [](std::int64_t begin, std::int64_t bytes) { return begin + (bytes + 63) / 64 * 64; };
  const auto floats = [](const Shape& shape) {
    return element_count(shape) * static_cast<std::int64_t>(sizeof(float));
  };
  ConvolutionScratch s;
  const std::int64_t filters = ops::packed_bytes(weight, ops::groups_of(call.attributes));
  s.partial = after(s.filters, filters);
  // Beside the sums oneDNN keeps some flags there, and elsewhere a few rows.
  s.operands[0] = after(s.partial, (of_weight ? filters : 0) + (std::int64_t{1} << 16));
  s.operands[1] = after(s.operands[0], converts ? floats(call.operands[0].shape) : 0);
  s.result = after(s.operands[1], converts ? floats(call.operands[1].shape) : 0);
  s.end = after(s.result, converts || of_weight ? floats(result) : 0);
  return s;
}

}  // namespace alpa
