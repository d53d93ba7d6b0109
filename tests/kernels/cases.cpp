#include "tests/kernels/cases.h"

#include <array>
#include <tuple>

#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

using I = std::int64_t;

Attributes equation(const std::string& text) { return {{"equation", text}}; }

Attributes adamw_with(double clip) {
  return {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"clip", clip}};
}

Attributes factored(I rows, I columns) { return {{"rows", rows}, {"columns", columns}, {"clip", 0.1}}; }

Attributes squares(I rows, I columns) { return {{"rows", rows}, {"columns", columns}, {"size_q", I{2}}}; }

Attributes unfactored(I elements) { return {{"elements", elements}, {"weight_decay", 0.1}}; }

Attributes adafactor(I rows, I columns, I elements) {
  return {{"elements", elements}, {"weight_decay", 0.1}, {"rows", rows}, {"columns", columns}};
}

Attributes sgd_with(double clip) { return {{"momentum", 0.9}, {"weight_decay", 0.1}, {"clip", clip}}; }

Attributes nesterov() {
  return {{"momentum", 0.9}, {"weight_decay", 0.1}, {"clip", 0.1}, {"nesterov", I{1}}};
}

/// "t[2x3]"
std::string t(const Shape& shape) { return "t" + type_text({DType::f32, shape}).substr(3); }

/// Convolutions with their gradients: strides, padding, dilation, groups, filters for each channel alone, one
/// dimension, and channels beyond a vector.
void add_convolutions(std::vector<OpCase>& cases) {
  struct Case {
    Shape x, weight, y;
    Attributes attributes;
  };
  for (const auto& [x, weight, y, attributes] : std::vector<Case>{
           {{3, 5, 6, 3}, {3, 3, 3, 5}, {3, 5, 6, 5}, {{"padding", I{1}}}},
           {{2, 7, 9, 5}, {3, 2, 5, 7}, {2, 3, 4, 7}, {{"stride", I{2}}}},
           {{2, 8, 7, 4}, {3, 3, 4, 6}, {2, 4, 4, 6}, {{"stride", I{2}}, {"padding", I{1}}}},
           {{3, 4, 5, 7}, {1, 1, 7, 3}, {3, 2, 3, 3}, {{"stride", I{2}}}},
           {{3, 4, 5, 7}, {1, 1, 7, 3}, {3, 4, 5, 3}, {}},
           {{2, 3, 4, 6}, {1, 1, 2, 9}, {2, 3, 4, 9}, {{"size_g", I{3}}}},
           {{2, 6, 5, 6}, {3, 3, 2, 9}, {2, 6, 5, 9}, {{"size_g", I{3}}, {"padding", I{1}}}},
           {{2, 5, 6, 5},
            {3, 3, 1, 5},
            {2, 3, 3, 5},
            {{"size_g", I{5}}, {"stride", I{2}}, {"padding", I{1}}}},
           {{2, 7, 8, 3}, {3, 3, 3, 4}, {2, 3, 4, 4}, {{"dilation", I{2}}}},
           {{2, 1, 11, 6}, {1, 5, 1, 6}, {2, 1, 11, 6}, {{"size_g", I{6}}, {"padding_w", I{2}}}},
           {{3, 1, 10, 4}, {1, 3, 4, 5}, {3, 1, 4, 5}, {{"stride_w", I{2}}}},
           {{2, 5, 6, 3}, {3, 3, 3, 130}, {2, 3, 3, 130}, {{"stride", I{2}}, {"padding", I{1}}}},
           {{2, 9, 9, 35}, {3, 3, 35, 33}, {2, 9, 9, 33}, {{"padding", I{1}}}}}) {
    Attributes of_input = attributes, of_weight = attributes;
    of_input.set("size_h", x[1]);
    of_input.set("size_w", x[2]);
    of_weight.set("size_p", weight[0]);
    of_weight.set("size_q", weight[1]);
    cases.push_back({"conv2d", t(x) + " " + t(weight), attributes});
    cases.push_back({"conv2d_grad_input", t(y) + " " + t(weight), of_input});
    cases.push_back({"conv2d_grad_weight", t(x) + " " + t(y), of_weight});
  }
}

/// Windows that overlap, leave gaps, hang over the border, or cover an image; channels beyond one block of
/// the CPU kernels.
void add_pools(std::vector<OpCase>& cases) {
  struct Case {
    Shape x, y;
    Attributes attributes;
  };
  for (const auto& [x, y, attributes] : std::vector<Case>{
           {{3, 5, 7, 5}, {3, 3, 4, 5}, {{"window", I{3}}, {"stride", I{2}}, {"padding", I{1}}}},
           {{2, 7, 6, 3}, {2, 3, 2, 3}, {{"window", I{2}}, {"stride_h", I{2}}, {"stride_w", I{3}}}},
           {{2, 5, 6, 70}, {2, 5, 6, 70}, {{"window", I{3}}, {"padding", I{1}}}},
           {{3, 4, 3, 7}, {3, 1, 1, 7}, {{"window_h", I{4}}, {"window_w", I{3}}}},
           {{2, 1, 9, 4}, {2, 1, 4, 4}, {{"window_w", I{3}}, {"stride_w", I{2}}}}}) {
    Attributes of_average = attributes;
    of_average.set("size_h", x[1]);
    of_average.set("size_w", x[2]);
    for (const char* name : {"average_pool", "max_pool"}) cases.push_back({name, t(x), attributes});
    cases.push_back({"average_pool_grad", t(y), of_average});
    cases.push_back({"max_pool_grad", t(y) + " " + t(x), attributes});
  }
}

/// Groups of samples: several, and one that may be split itself; rows enough for several pieces of the sums.
void add_batch_norms(std::vector<OpCase>& cases) {
  struct Case {
    std::string x, statistics, channels;
    I group;
  };
  for (const auto& [x, statistics, channels, group] : std::vector<Case>{
           {"6x3x5x7", "2x7", "7", 3}, {"5x3x2x3", "1x3", "3", 5}, {"4x11x13x70", "1x70", "70", 4}}) {
    const Attributes of_samples{{"size_b", group}}, attributes{{"size_b", group}, {"epsilon", 1e-5}};
    const std::string image = "t[" + x + "]", f = " f[" + statistics + "]", p = " p[" + statistics + "]",
                      c = " t[" + channels + "]", known = f + p, of_dy = image + " " + image + known;
    cases.push_back({"channel_mean", image, of_samples});
    cases.push_back({"channel_variance", image + f, of_samples});
    cases.push_back({"batch_norm", image + known + c + c, attributes});
    cases.push_back({"batch_norm_relu", image + known + c + c, attributes});
    cases.push_back({"batch_norm_add_relu", image + known + c + c + " " + image, attributes});
    cases.push_back({"batch_norm_sums", of_dy, attributes});
    cases.push_back({"batch_norm_relu_sums", of_dy + c + c, attributes});
    cases.push_back({"batch_norm_grad", of_dy + c + f + f, attributes});
    cases.push_back({"batch_norm_relu_grad", of_dy + c + c + f + f, attributes});
  }
}

/// Sequences of all lengths from none to more steps than there are, in both directions; products beyond one
/// block, and enough of them for several threads.
void add_recurrences(std::vector<OpCase>& cases) {
  struct Case {
    I batch, steps, width;
    int lengths;
  };
  for (const auto& [batch, steps, width, lengths] :
       std::vector<Case>{{3, 5, 2, 7}, {1, 4, 3, 7}, {5, 3, 1, 3}, {9, 7, 33, 9}, {67, 3, 50, 4}})
    for (const I reverse : {I{0}, I{1}}) {
      const Attributes direction{{"reverse", reverse}};
      const std::string state = t({batch, steps, width}) + " ", of = " i[" + std::to_string(batch) + "]";
      for (const I gates : {I{3}, I{4}}) {
        const std::string x = t({batch, steps, gates, width}) + " ", w = t({width, gates, width});
        const std::string bias = gates == 3 ? " " + t({gates, width}) : "",
                          name = gates == 3 ? "gru" : "lstm";
        cases.push_back({name, x + w + bias + of, direction, lengths});
        cases.push_back({name + "_grad", state + state + state + x + w + of, direction, lengths});
      }
    }
  for (const I mean : {I{0}, I{1}})
    cases.push_back({"step_weights", "i[40]", {{"size_s", I{7}}, {"mean", mean}}, 10});
}

/// Tensors of two types by turns, more of one than a kernel takes together.
std::string many_operands(int count) {
  std::string operands;
  for (int i = 0; i < count; ++i) operands += i < 10 && i % 2 == 0 ? "f[5] " : "t[9] ";
  return operands;
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases{
      {"accumulate", "t[3x5]", {}},
      {"accumulate", "t[9000]", {}},
      {"accumulate_rounded", "t[3x5]", {}},
      {"accumulate_rounded", "t[9000]", {}},
      {"adafactor", "f[3x7] f[3x7] p[2] p[6] p[] f[3] f[7]", adafactor(0, 1, 21)},
      {"adafactor", "f[5x3x7x4] f[5x3x7x4] p[2] p[6] p[] f[5x3x4] f[3x7x4]", adafactor(0, 2, 420)},
      {"adafactor", "f[2x601x5] f[2x601x5] p[2] p[6] p[] f[2x601] f[2x5]", adafactor(1, 2, 6010)},
      {"adafactor", "f[9001] f[9001] p[2] p[6] p[] f[9001]", unfactored(9001)},
      {"adafactor_factors", "p[3] p[7] p[3] p[7] p[6] p[]", factored(0, 1)},
      {"adafactor_factors", "p[5x3x4] p[3x7x4] p[5x3x4] p[3x7x4] p[6] p[]", factored(0, 2)},
      {"adafactor_factors", "p[6x601] p[6x5] p[6x601] p[6x5] p[6] p[]", factored(1, 2)},
      {"adafactor_master", "f[3x7] b[3x7] t[3x7] p[2] p[6] p[] f[3] f[7]", adafactor(0, 1, 21)},
      {"adafactor_master", "f[11] b[11] f[11] p[2] p[6] p[] f[11]", unfactored(11)},
      {"adafactor_moment", "p[3] t[3] p[6] p[]", {{"clip", 0.1}}},
      {"adafactor_moment", "p[] f[] p[6] p[]", {}},
      {"adafactor_squares", "t[3x7] t[3x7] f[3] f[7]", squares(0, 1)},
      {"adafactor_squares", "t[5x3x7x4] f[5x3x7x4] f[5x3x4] f[3x7x4]", squares(0, 2)},
      {"adafactor_squares", "t[90x301] t[90x301] f[90] f[301]", squares(0, 1)},
      {"adafactor_squares", "t[9001] f[9001] f[9001]", {{"size_q", I{2}}}},
      {"adafactor_sums", "t[3x7]", factored(0, 1)},
      {"adafactor_sums", "t[5x3x7x4]", factored(0, 2)},
      {"adafactor_sums", "t[3x613x37]", factored(1, 2)},
      {"adamw", "f[3x7] f[3x7] f[3x7] p[3x7] p[6] p[]", adamw_with(0)},
      {"adamw", "f[9001] f[9001] f[9001] p[9001] p[6] p[]", adamw_with(0.1)},
      {"adamw_master", "f[5x7] f[5x7] f[5x7] p[5x7] p[6] p[] b[5x7]", adamw_with(0.5)},
      {"adamw_master", "f[5x7] b[5x7] f[5x7] p[5x7] p[6] p[] b[5x7]", adamw_with(0.5)},
      {"bias_add", "t[3x2x5] t[5]", {}},
      {"bias_add", "t[3x2x5] t[2x5]", {}},
      {"bias_add", "t[130x70] t[70]", {}},
      {"bias_add", "t[35x264] t[264]", {}},
      {"bias_gelu", "t[3x2x5] t[2x5]", {}},
      {"bias_gelu", "t[35x264] t[264]", {}},
      {"bias_gelu_grad", "t[3x2x5] t[3x2x5] t[2x5]", {}},
      {"bias_gelu_grad", "t[300x97] t[300x97] t[97]", {}},
      {"bias_gelu_grad", "t[70x264] t[70x264] t[264]", {}},
      {"concat", "t[3x2x5] t[3x2x7]", {}},
      {"concat", "t[3x5x7x70] t[3x5x7x33]", {}},
      {"cross_entropy", "t[2x3x7] i[2x3] f[2x3] p[2x3]", {}, 7},
      {"cross_entropy_grad", "t[2x3x7] i[2x3] f[2x3] p[2x3] f[2x3]", {}, 7},
      {"cross_entropy_grad", "t[70x257] i[70] f[70] p[70] f[70]", {}, 257},
      {"cross_entropy_grad", "t[2x3x8] i[2x3] f[2x3] p[2x3] f[2x3]", {{"words", I{5}}}, 5},
      {"dropout", "t[2x3x7]", {{"rate", 0.3}, {"stream", I{5}}}},
      {"dropout", "t[3x2x2999]", {{"rate", 0.5}, {"stream", I{0}}}},
      {"expand_like", "t[3x5] f", {}},
      {"expand_like", "t[20000] f", {}},
      {"group_norm", "t[3x5x2x6] t[6] t[6]", {{"size_g", I{3}}, {"epsilon", 1e-5}}},
      {"group_norm", "t[3x7x5] t[5] t[5]", {{"size_g", I{1}}, {"epsilon", 1e-5}}},
      {"group_norm", "t[2x11x9x72] t[72] t[72]", {{"size_g", I{8}}, {"epsilon", 1e-5}}},
      {"group_norm_grad", "t[3x5x2x6] t[3x5x2x6] t[6] f[3x3] p[3x3]", {{"size_g", I{3}}}},
      {"group_norm_grad", "t[2x11x9x72] t[2x11x9x72] t[72] f[2x8] p[2x8]", {{"size_g", I{8}}}},
      {"is_best", "t[2x3x7] i[2x3] f[2x3]", {}, 7},
      {"is_best", "t[70x257] i[70] f[70]", {}, 257},
      {"layer_norm", "t[3x5x7] t[7] t[7]", {{"epsilon", 1e-5}}},
      {"layer_norm", "t[200x97] t[97] t[97]", {{"epsilon", 1e-5}}},
      {"layer_norm", "t[3x601] t[601] t[601]", {{"epsilon", 1e-5}}},
      {"layer_norm", "t[5x1608] t[1608] t[1608]", {{"epsilon", 1e-5}}},
      {"layer_norm_grad", "t[3x5x7] t[3x5x7] t[7] f[3x5] p[3x5]", {}},
      {"layer_norm_grad", "t[300x97] t[300x97] t[97] f[300] p[300]", {}},
      {"layer_norm_grad", "t[70x296] t[70x296] t[296] f[70] p[70]", {}},
      {"layer_norm_grad_add", "t[3x5x7] t[3x5x7] t[7] f[3x5] p[3x5] t[3x5x7]", {}},
      {"layer_norm_grad_add", "t[70x296] t[70x296] t[296] f[70] p[70] t[70x296]", {}},
      {"pool_steps", "t[3x5x7] f[3x5]", {}},
      {"pool_steps", "t[2x3x2x301] f[2x3]", {}},
      {"pool_steps_grad", "t[3x7] f[3x5]", {}},
      {"pool_steps_grad", "t[9x2x301] f[9x7]", {}},
      {"rearrange", "t[2x3x20]", {{"equation", std::string("b s (h k) -> b h s k")}, {"size_h", I{4}}}},
      {"rearrange", "t[2x4x3x5]", equation("b h s k -> b s (h k)")},
      {"rearrange", "t[70x45]", equation("m n -> n m")},
      {"rearrange", "t[6x35x4]", equation("a b c -> c b a")},
      {"rearrange", "t[6x20]", {{"equation", std::string("a (b c) -> (a b) c")}, {"size_b", I{4}}}},
      {"rearrange", "t[2x3x40x50]", equation("a b c d -> b a c d")},
      {"reduce_leading", "t[3x2x5]", {{"keep", I{1}}}},
      {"reduce_leading", "t[3x2x5]", {{"keep", I{2}}}},
      {"reduce_leading", "t[3x5]", {{"keep", I{0}}}},
      {"reduce_leading", "t[613x37]", {{"keep", I{1}}}},
      {"reduce_leading", "t[150x296]", {{"keep", I{1}}}},
      {"reduce_sum", "t[3x5]", {}},
      {"reduce_sum", "t[9x2111]", {}},
      {"rms_norm", "t[3x5x7] t[7]", {{"epsilon", 1e-5}}},
      {"rms_norm", "t[200x97] t[97]", {{"epsilon", 1e-5}}},
      {"rms_norm", "t[5x296] t[296]", {{"epsilon", 1e-5}}},
      {"rms_norm_grad", "t[3x5x7] t[3x5x7] t[7] p[3x5]", {}},
      {"rms_norm_grad", "t[200x97] t[200x97] t[97] p[200]", {}},
      {"rms_norm_grad", "t[70x264] t[70x264] t[264] p[70]", {}},
      {"rms_norm_grad_add", "t[3x5x7] t[3x5x7] t[7] p[3x5] t[3x5x7]", {}},
      {"rms_norm_grad_add", "t[70x264] t[70x264] t[264] p[70] t[70x264]", {}},
      {"rotary", "t[2x3x2x6]", {{"theta", 10000.0}}},
      {"rotary", "t[2x40x3x8]", {{"theta", 500.0}, {"inverse", I{1}}}},
      {"row_max", "t[3x2x7]", {}},
      {"row_max", "t[40x300]", {}},
      {"row_max", "t[3x2x8]", {{"words", I{5}}}},
      {"row_sum_exp", "t[3x2x7] f[3x2]", {}},
      {"row_sum_exp", "t[40x300] f[40]", {}},
      {"row_sum_exp", "t[3x2x8] f[3x2]", {{"words", I{5}}}},
      {"running_statistic", "f[3x7] f[7]", {{"momentum", 0.1}}},
      {"running_update", "f[7] f[7] p[4]", {{"momentum", 0.1}, {"groups", I{3}}}},
      {"running_update", "f[301] p[301] p[4]", {{"momentum", 1.0}, {"correction", 1.25}, {"groups", I{1}}}},
      {"scale", "t[3x5]", {{"factor", -1.5}}},
      {"sgd", "f[3x7] f[3x7] f[3x7] p[6] p[]", sgd_with(0)},
      {"sgd", "f[3x7] f[3x7] f[3x7] p[6] p[]", nesterov()},
      {"sgd_master", "f[3x7] f[3x7] f[3x7] p[6] p[] b[3x7]", sgd_with(0.1)},
      {"sgd_master", "f[3x7] b[3x7] f[3x7] p[6] p[] b[3x7]", sgd_with(0.1)},
      {"slice", "t[3x2x12]", {{"begin", I{5}}, {"size_c", I{7}}}},
      {"slice", "t[90x103]", {{"begin", I{0}}, {"size_c", I{70}}}},
      {"slice_grad", "t[3x2x7]", {{"begin", I{5}}, {"size_e", I{12}}}},
      {"slice_grad", "t[90x70]", {{"begin", I{33}}, {"size_e", I{103}}}},
      {"sum_squares", "t[3x5]", {{"weight", 0.25}}},
      {"sum_squares", "t[3x5] t[7] t[2x9001] t[]", {}},
      {"sum_squares", many_operands(150), {}},
      {"upsample", "t[3x2x3x5]", {{"factor", I{2}}}},
      {"upsample", "t[2x5x4x70]", {{"factor", I{3}}}},
  };
  // Experts without tokens, experts with too many, as many choices as experts, one expert; widths beyond the
  // blocks of the kernels.
  for (const auto& [logits, choices, capacity] :
       std::vector<std::tuple<std::string, I, I>>{{"2x7x5", 2, 3},
                                                  {"1x40x8", 1, 6},
                                                  {"3x9x6", 3, 20},
                                                  {"2x5x3", 3, 2},
                                                  {"2x3x1", 1, 2},
                                                  {"3x90x37", 6, 11}}) {
    const std::string chosen = logits.substr(0, logits.rfind('x')) + "x" + std::to_string(choices) + "]";
    cases.push_back({"top_k_slots", "l[" + logits + "]", {{"size_k", choices}, {"capacity", capacity}}});
    for (const I normalize : {I{0}, I{1}}) {
      cases.push_back(
          {"top_k_weights", "l[" + logits + "]", {{"size_k", choices}, {"normalize", normalize}}});
      cases.push_back({"top_k_weights_grad", "l[" + logits + "] f[" + chosen, {{"normalize", normalize}}});
    }
    cases.push_back({"balance_loss", "l[" + logits + "]", {}});
    cases.push_back(
        {"balance_loss_grad", "l[" + logits + "] f[" + logits.substr(0, logits.rfind('x')) + "]", {}});
  }
  for (const auto& [groups, tokens, choices, experts, capacity, width] : std::vector<std::array<int, 6>>{
           {2, 7, 2, 5, 3, 3}, {3, 5, 1, 2, 2, 7}, {1, 4, 3, 3, 4, 1}, {2, 60, 2, 6, 25, 301}}) {
    const auto text = [](std::initializer_list<int> extents) {
      std::string joined;
      for (const int extent : extents) joined += (joined.empty() ? "[" : "x") + std::to_string(extent);
      return joined + "]";
    };
    const std::string x = "t" + text({groups, tokens, width}),
                      rows = "t" + text({experts, groups, capacity, width}),
                      slots = " r" + text({groups, tokens, choices}),
                      weights = " f" + text({groups, tokens, choices});
    const Attributes sizes{{"size_e", I{experts}}, {"size_c", I{capacity}}};
    const int ids = experts * capacity;
    cases.push_back({"dropped", slots.substr(1), {}, ids});
    cases.push_back({"dispatch", x + slots, sizes, ids});
    cases.push_back({"dispatch_grad", rows + slots, {}, ids});
    cases.push_back({"combine", rows + slots + weights, {}, ids});
    cases.push_back({"combine_grad_rows", x + slots + weights, sizes, ids});
    cases.push_back({"combine_grad_weights", x + " " + rows + slots, {}, ids});
  }
  add_low_rank_cases(cases);
  add_row_cases(cases);
  add_decoding_cases(cases);
  for (const char* name : {"add", "add_relu", "mul"})
    for (const char* operands : {"t[3x5] t[3x5]", "t[17000] t[17000]"}) cases.push_back({name, operands, {}});
  for (const char* name : {"gelu", "silu", "sigmoid", "tanh", "relu"}) {
    cases.push_back({name, "t[3x5]", {}});
    cases.push_back({name, "t[3x6007]", {}});
    cases.push_back({std::string(name) + "_grad", "t[3x5] t[3x5]", {}});
  }
  // The linear layers of the models with their gradients, batched products, and contractions that are no
  // product.
  for (const auto& [operands, text] : std::vector<std::pair<std::string, std::string>>{
           {"t[2x3x5] t[5x4x6]", "b s d, d h k -> b s h k"},
           {"t[2x3x4x6] t[5x4x6]", "b s h k, d h k -> b s d"},
           {"t[2x3x5] t[2x3x4x6]", "b s d, b s h k -> d h k"},
           {"t[2x3x4x6] t[4x6x5]", "b s h k, h k d -> b s d"},
           {"t[2x3x5] t[5x7]", "b s d, d f -> b s f"},
           {"t[2x3x7] t[5x7]", "b s f, d f -> b s d"},
           {"t[2x3x5] t[7x5]", "b s d, v d -> b s v"},
           {"t[2x3x7] t[7x5]", "b s v, v d -> b s d"},
           {"t[2x3x7] t[2x3x5]", "b s v, b s d -> v d"},
           {"t[70x130] t[130x90]", "m k, k n -> m n"},
           {"t[70x130] t[130x90]", "m k, k n -> n m"},
           {"t[161x75] t[75x107]", "m k, k n -> m n"},
           {"t[75x161] t[107x75]", "k m, n k -> m n"},
           {"t[20x2700] t[2700x20]", "m k, k n -> m n"},
           {"t[530x300] t[300x3]", "m k, k n -> m n"},
           {"t[300x3] t[530x300]", "k m, n k -> m n"},
           {"t[9001x4] t[7x9001]", "k m, n k -> m n"},
           {"t[9x30x31] t[9x31x70]", "b m k, b k n -> b m n"},
           {"t[3x4x5] t[3x5x6]", "b m k, b k n -> b m n"},
           {"t[3x4x5] t[3x6x5]", "b m k, b n k -> b n m"},
           {"t[2x3x4x5] t[2x6x4x5]", "b s h k, b t h k -> b h s t"},
           {"t[2x4x3x6] t[2x6x4x5]", "b h s t, b t h k -> b s h k"},
           {"t[3x4x5] t[5x3x4]", "b m k, k b m -> b m"},
           {"t[4x5] t[4x6]", "e d, e f -> e d f"},
           {"t[7] t[7]", "k, k ->"},
           {"t[3x4x5] t[4x6]", "a k c, k n -> c n a"},
           {"t[300x3x2] t[2x280x3]", "m k l, l n k -> n m"},
       })
    cases.push_back({"einsum", operands, equation(text)});
  // Blocks of the CPU kernels are 64 queries and 256 keys; the CUDA kernels have a form for heads up to 32,
  // 64 and 128 wide, and on tensor cores blocks of 64 and 32. Head counts with and without sharing.
  for (const I causal : {I{0}, I{1}}) {
    const Attributes mask{{"causal", causal}};
    cases.push_back({"attention", "t[2x5x2x4] t[2x5x2x4] t[2x5x2x4]", mask});
    cases.push_back({"attention", "t[1x67x4x6] t[1x67x2x6] t[1x67x2x6]", mask});
    cases.push_back(
        {"attention", "t[1x290x1x8] t[1x290x1x8] t[1x290x1x8]", {{"causal", causal}, {"scale", 2.0}}});
    cases.push_back({"attention", "t[1x35x2x40] t[1x35x1x40] t[1x35x1x40]", mask});
    cases.push_back({"attention", "t[1x18x1x100] t[1x35x1x100] t[1x35x1x100]", mask});
    cases.push_back({"attention", "t[1x66x1x128] t[1x66x1x128] t[1x66x1x128]", mask});
    cases.push_back(
        {"attention_grad", "t[2x5x2x4] t[2x5x2x4] t[2x5x2x4] t[2x5x2x4] t[2x5x2x4] p[2x2x5]", mask});
    cases.push_back(
        {"attention_grad", "t[3x67x4x6] t[3x67x4x6] t[3x67x2x6] t[3x67x2x6] t[3x67x4x6] p[3x4x67]", mask});
    cases.push_back({"attention_grad",
                     "t[1x290x2x8] t[1x290x2x8] t[1x290x1x8] t[1x290x1x8] t[1x290x2x8] p[1x2x290]",
                     {{"causal", causal}, {"scale", 0.5}}});
    cases.push_back({"attention_grad",
                     "t[1x35x2x40] t[1x35x2x40] t[1x35x1x40] t[1x35x1x40] t[1x35x2x40] p[1x2x35]", mask});
    cases.push_back({"attention_grad",
                     "t[1x18x1x100] t[1x18x1x100] t[1x35x1x100] t[1x35x1x100] t[1x18x1x100] p[1x1x18]",
                     mask});
    cases.push_back({"attention_grad",
                     "t[1x66x1x128] t[1x66x1x128] t[1x66x1x128] t[1x66x1x128] t[1x66x1x128] p[1x1x66]",
                     mask});
  }
  add_convolutions(cases);
  add_pools(cases);
  add_batch_norms(cases);
  add_recurrences(cases);
  add_vertex_cases(cases);
  add_document_cases(cases);
  return cases;
}

}  // namespace

std::vector<OpCase> cases_of(const OpDef& op) {
  std::vector<OpCase> cases;
  for (OpCase& c : all_cases())
    if (c.op == op.name) cases.push_back(std::move(c));
  return cases;
}

std::string case_text(const OpCase& c) { return c.op + " " + c.operands + " " + c.attributes.to_string(); }

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDef* op : op_catalog().all()) names.emplace_back(op->name);
  return names;
}

}  // namespace alpa
