#include "tests/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "libalpa/base/philox.h"
#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

using Call = ReferenceCall;
using Results = ReferenceResults;

Results map1(const Call& c, const std::function<double(double)>& f) {
  Values y;
  for (const double x : c.in[0]) y.push_back(f(x));
  return {y};
}

Results map2(const Call& c, const std::function<double(double, double)>& f) {
  Values z;
  for (std::size_t i = 0; i < c.in[0].size(); ++i) z.push_back(f(c.in[0][i], c.in[1][i]));
  return {z};
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
/// How far each factor moves in a dense tensor.
std::vector<std::size_t> strides_of(const ShardingRule& rule,
                                    const std::vector<DimensionFactors>& dimensions) {
  std::vector<std::size_t> strides(rule.factors.size(), 0);
  std::size_t stride = 1;
  for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension)
    for (auto f = dimension->rbegin(); f != dimension->rend(); ++f) {
      const auto factor = static_cast<std::size_t>(*f);
      strides[factor] = stride;
      stride *= static_cast<std::size_t>(rule.factors[factor].size);
    }
  return strides;
}

/// One loop over all factors at once: einsum and rearrange.
Results contract(const Call& c) {
  const ShardingRule rule = rule_of(c.op, {c.types, c.attributes});
  std::vector<std::vector<std::size_t>> strides;
  for (const auto& operand : rule.operands) strides.push_back(strides_of(rule, operand));
  const std::vector<std::size_t> result_strides = strides_of(rule, rule.results[0]);
  std::size_t points = 1;
  for (const Factor& factor : rule.factors) points *= static_cast<std::size_t>(factor.size);
  Values result(static_cast<std::size_t>(element_count(result_shape(rule, 0))), 0.0);
  for (std::size_t point = 0; point < points; ++point) {
    std::size_t rest = point, to = 0, from[2] = {0, 0};
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
      const std::size_t size = static_cast<std::size_t>(rule.factors[f].size), place = rest % size;
      rest /= size;
      to += place * result_strides[f];
      for (std::size_t i = 0; i < strides.size(); ++i) from[i] += place * strides[i][f];
    }
    result[to] += c.in[0][from[0]] * (c.in.size() == 2 ? c.in[1][from[1]] : 1.0);
  }
  return {result};
}

Results bias_add(const Call& c) {
  Values y = c.in[0];
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += c.in[1][i % c.in[1].size()];
  return {y};
}

Results bias_gelu(const Call& c) {
  Values y = c.in[0];
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = gelu(y[i] + c.in[1][i % c.in[1].size()]);
  return {y};
}

Results bias_gelu_grad(const Call& c) {
  Values dx = c.in[0], dbias(c.in[2].size(), 0.0);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const std::size_t column = i % dbias.size();
    dx[i] *= gelu_slope(c.in[1][i] + c.in[2][column]);
    dbias[column] += dx[i];
  }
  return {dx, dbias};
}

/// Adds the last operand to result 0.
Results with_last_added(const Call& c, Results results) {
  for (std::size_t i = 0; i < results[0].size(); ++i) results[0][i] += c.in.back()[i];
  return results;
}

Results reduce_leading(const Call& c) {
  std::size_t width = 1;
  const Shape& shape = c.types[0].shape;
  for (std::size_t d = shape.size() - static_cast<std::size_t>(c.attributes.integer("keep"));
       d < shape.size(); ++d)
    width *= c.extent(0, d);
  Values sums(width, 0.0);
  for (std::size_t i = 0; i < c.in[0].size(); ++i) sums[i % width] += c.in[0][i];
  return {sums};
}

Results dropout(const Call& c) {
  const double rate = c.attributes.number("rate");
  const std::uint64_t key =
      philox_key(c.point.seed, static_cast<std::uint64_t>(c.attributes.integer("stream", 0)));
  const std::size_t per_sample = c.in[0].size() / c.extent(0, 0);
  Values y = c.in[0];
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto sample = static_cast<std::uint64_t>(c.point.first_sample) + i / per_sample;
    const float u =
        philox_uniform_at(key, (static_cast<std::uint64_t>(c.point.step) << 32) + sample, i % per_sample);
    y[i] = u < static_cast<float>(rate) ? 0.0 : y[i] / (1 - rate);
  }
  return {y};
}

Results embedding(const Call& c) {
  const std::size_t d = c.width(0);
  Values rows;
  for (const double id : c.in[1])
    for (std::size_t i = 0; i < d; ++i)
      rows.push_back(id >= 0 && id < static_cast<double>(c.extent(0, 0))
                         ? c.in[0][static_cast<std::size_t>(id) * d + i]
                         : 0.0);
  return {rows};
}

Results distinct_rows(const Call& c) {
  const std::size_t d = c.width(0);
  std::map<double, Values> rows;
  for (std::size_t i = 0; i < c.in[1].size(); ++i) {
    if (c.in[1][i] < 0) continue;
    Values& row = rows[c.in[1][i]];
    row.resize(d);
    for (std::size_t j = 0; j < d; ++j) row[j] += c.in[0][i * d + j];
  }
  Values sums(c.in[0].size()), ids(c.in[1].size(), -1.0);
  std::size_t n = 0;
  for (const auto& [id, row] : rows) {
    std::ranges::copy(row, sums.begin() + static_cast<std::ptrdiff_t>(n * d));
    ids[n++] = id;
  }
  return {sums, ids};
}

Results embedding_grad(const Call& c) {
  const std::size_t d = c.width(0);
  const auto v = static_cast<std::size_t>(c.attributes.integer("size_v"));
  Values table(v * d, 0.0);
  for (std::size_t i = 0; i < c.in[1].size(); ++i)
    if (c.in[1][i] >= 0 && c.in[1][i] < static_cast<double>(v))
      for (std::size_t j = 0; j < d; ++j)
        table[static_cast<std::size_t>(c.in[1][i]) * d + j] += c.in[0][i * d + j];
  return {table};
}

/// Whether an element of the logits is of a word, not of the padding behind them.
bool is_word(const Call& c, std::size_t element) {
  const std::int64_t words = c.attributes.integer("words", 0);
  return words == 0 || element % c.width(0) < static_cast<std::size_t>(words);
}

Results row_max(const Call& c) {
  Values maxima(c.in[0].size() / c.width(0), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < c.in[0].size(); ++i)
    if (is_word(c, i)) maxima[i / c.width(0)] = std::max(maxima[i / c.width(0)], c.in[0][i]);
  return {maxima};
}

Results row_sum_exp(const Call& c) {
  Values sums(c.in[1].size(), 0.0);
  for (std::size_t i = 0; i < c.in[0].size(); ++i)
    if (is_word(c, i)) sums[i / c.width(0)] += std::exp(c.in[0][i] - c.in[1][i / c.width(0)]);
  return {sums};
}

Results cross_entropy(const Call& c) {
  Values losses;
  for (std::size_t r = 0; r < c.in[1].size(); ++r) {
    const double target = c.in[1][r];
    losses.push_back(target < 0 ? 0.0
                                : std::log(c.in[3][r]) + c.in[2][r] -
                                      c.in[0][r * c.width(0) + static_cast<std::size_t>(target)]);
  }
  return {losses};
}

Results is_best(const Call& c) {
  Values best;
  for (std::size_t r = 0; r < c.in[1].size(); ++r)
    best.push_back(c.in[1][r] >= 0 &&
                   c.in[0][r * c.width(0) + static_cast<std::size_t>(c.in[1][r])] >= c.in[2][r]);
  return {best};
}

Results cross_entropy_grad(const Call& c) {
  Values dlogits(c.in[0].size());
  for (std::size_t i = 0; i < dlogits.size(); ++i) {
    const std::size_t r = i / c.width(0);
    if (c.in[1][r] < 0 || !is_word(c, i)) continue;
    const double one_hot = c.in[1][r] == static_cast<double>(i % c.width(0)) ? 1 : 0;
    dlogits[i] = (std::exp(c.in[0][i] - c.in[2][r]) / c.in[3][r] - one_hot) * c.in[4][r];
  }
  return {dlogits};
}

Results adamw(const Call& c) {
  Values w = c.in[0], m = c.in[2], v = c.in[3];
  const double b1 = c.attributes.number("beta1"), b2 = c.attributes.number("beta2"),
               factor = gradient_factor_reference(c, c.in[4], c.in[5][0]);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = c.in[1][i] * factor;
    m[i] = b1 * m[i] + (1 - b1) * g;
    v[i] = b2 * v[i] + (1 - b2) * g * g;
    const double step = m[i] / c.in[4][1] / (std::sqrt(v[i] / c.in[4][2]) + c.attributes.number("epsilon"));
    w[i] -= c.in[4][0] * (step + c.attributes.number("weight_decay") * w[i]);
  }
  if (c.in.size() > 6) return {w, m, v, w};
  return {w, m, v};
}

Results sgd(const Call& c) {
  Values w = c.in[0], v = c.in[2];
  const double factor = gradient_factor_reference(c, c.in[3], c.in[4][0]),
               momentum = c.attributes.number("momentum");
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = c.in[1][i] * factor + c.attributes.number("weight_decay") * w[i];
    v[i] = momentum * v[i] + g;
    w[i] -= c.in[3][0] * (c.attributes.integer("nesterov", 0) ? g + momentum * v[i] : v[i]);
  }
  if (c.in.size() > 5) return {w, v, w};
  return {w, v};
}

Results sum_squares(const Call& c) {
  double sum = 0;
  for (const Values& x : c.in)
    for (const double element : x) sum += element * element;
  return {{sum * c.attributes.number("weight", 1)}};
}

Results reduce_sum(const Call& c) {
  double sum = 0;
  for (const double x : c.in[0]) sum += x;
  return {{sum}};
}

const std::map<std::string_view, std::function<Results(const Call&)>>& meanings() {
  static const std::map<std::string_view, std::function<Results(const Call&)>> table{
      {"accumulate", [](const Call& c) { return Results{c.in[0]}; }},
      {"accumulate_rounded", [](const Call& c) { return Results{c.in[0]}; }},
      {"adafactor", [](const Call& c) { return adafactor_reference(c, 1); }},
      {"adafactor_factors", adafactor_factors_reference},
      {"adafactor_master", [](const Call& c) { return adafactor_reference(c, 2); }},
      {"adafactor_moment", adafactor_moment_reference},
      {"adafactor_squares", adafactor_squares_reference},
      {"adafactor_sums", adafactor_sums_reference},
      {"adamw", adamw},
      {"adamw_master", adamw},
      {"add", [](const Call& c) { return map2(c, [](double x, double y) { return x + y; }); }},
      {"add_relu",
       [](const Call& c) { return map2(c, [](double x, double y) { return std::max(x + y, 0.0); }); }},
      {"attention", attention_reference},
      {"attention_grad", attention_grad_reference},
      {"balance_loss", balance_loss_reference},
      {"balance_loss_grad", balance_loss_grad_reference},
      {"bias_add", bias_add},
      {"bias_gelu", bias_gelu},
      {"bias_gelu_grad", bias_gelu_grad},
      {"average_pool", average_pool_reference},
      {"average_pool_grad", average_pool_grad_reference},
      {"batch_norm", batch_norm_reference},
      {"batch_norm_add_relu", batch_norm_add_relu_reference},
      {"batch_norm_grad", batch_norm_grad_reference},
      {"batch_norm_relu", batch_norm_relu_reference},
      {"batch_norm_relu_grad", batch_norm_relu_grad_reference},
      {"batch_norm_relu_sums", batch_norm_relu_sums_reference},
      {"batch_norm_sums", batch_norm_sums_reference},
      {"cached_attention", cached_attention_reference},
      {"channel_mean", channel_mean_reference},
      {"channel_variance", channel_variance_reference},
      {"concat", concat_reference},
      {"conv2d", conv2d_reference},
      {"conv2d_grad_input", conv2d_grad_input_reference},
      {"conv2d_grad_weight", conv2d_grad_weight_reference},
      {"combine", combine_reference},
      {"combine_grad_rows", dispatch_reference},
      {"combine_grad_weights", combine_grad_weights_reference},
      {"cross_entropy", cross_entropy},
      {"dropped", dropped_reference},
      {"is_best", is_best},
      {"running_statistic", running_statistic_reference},
      {"running_update", running_update_reference},
      {"cross_entropy_grad", cross_entropy_grad},
      {"dispatch", dispatch_reference},
      {"dispatch_grad", combine_reference},
      {"dropout", dropout},
      {"einsum", contract},
      {"distinct_rows", distinct_rows},
      {"embedding", embedding},
      {"embedding_grad", embedding_grad},
      {"error_feedback", error_feedback_reference},
      {"expand_like", [](const Call& c) { return Results{Values(c.in[0].size(), c.in[1][0])}; }},
      {"gelu", [](const Call& c) { return map1(c, gelu); }},
      {"gelu_grad",
       [](const Call& c) { return map2(c, [](double dy, double x) { return dy * gelu_slope(x); }); }},
      {"group_norm", group_norm_reference},
      {"group_norm_grad", group_norm_grad_reference},
      {"layer_norm", layer_norm_reference},
      {"layer_norm_grad", layer_norm_grad_reference},
      {"layer_norm_grad_add", [](const Call& c) { return with_last_added(c, layer_norm_grad_reference(c)); }},
      {"gru", gru_reference},
      {"held_back", [](const Call& c) { return Results{c.in[0]}; }},
      {"low_rank_product", low_rank_product_reference},
      {"orthonormal_columns", orthonormal_columns_reference},
      {"renewed_columns", renewed_columns_reference},
      {"gru_grad", gru_grad_reference},
      {"lstm", lstm_reference},
      {"lstm_grad", lstm_grad_reference},
      {"max_pool", max_pool_reference},
      {"max_pool_grad", max_pool_grad_reference},
      {"mul", [](const Call& c) { return map2(c, [](double x, double y) { return x * y; }); }},
      {"pool_steps", pool_steps_reference},
      {"pool_steps_grad", pool_steps_grad_reference},
      {"rearrange", contract},
      {"reduce_leading", reduce_leading},
      {"reduce_sum", reduce_sum},
      {"relu", [](const Call& c) { return map1(c, [](double x) { return x > 0 ? x : 0; }); }},
      {"relu_grad",
       [](const Call& c) { return map2(c, [](double dy, double x) { return x > 0 ? dy : 0; }); }},
      {"rms_norm", rms_norm_reference},
      {"rms_norm_grad", rms_norm_grad_reference},
      {"rms_norm_grad_add", [](const Call& c) { return with_last_added(c, rms_norm_grad_reference(c)); }},
      {"rotary", rotary_reference},
      {"rotary_at", rotary_reference},
      {"row_max", row_max},
      {"row_sum_exp", row_sum_exp},
      {"scale",
       [](const Call& c) { return map1(c, [&](double x) { return x * c.attributes.number("factor"); }); }},
      {"sgd", sgd},
      {"sgd_master", sgd},
      {"sigmoid", [](const Call& c) { return map1(c, logistic); }},
      {"sigmoid_grad",
       [](const Call& c) { return map2(c, [](double dy, double y) { return dy * y * (1 - y); }); }},
      {"silu", [](const Call& c) { return map1(c, [](double x) { return x * logistic(x); }); }},
      {"silu_grad",
       [](const Call& c) {
         return map2(c, [](double dy, double x) { return dy * logistic(x) * (1 + x * (1 - logistic(x))); });
       }},
      {"document_starts", document_starts_reference},
      {"rounds", rounds_reference},
      {"rounds_grad", rounds_reference},
      {"slice", slice_reference},
      {"slice_grad", slice_grad_reference},
      {"store", [](const Call& c) { return Results{c.in[1]}; }},
      {"sum_squares", sum_squares},
      {"step_weights", step_weights_reference},
      {"tanh", [](const Call& c) { return map1(c, [](double x) { return std::tanh(x); }); }},
      {"tanh_grad",
       [](const Call& c) { return map2(c, [](double dy, double y) { return dy * (1 - y * y); }); }},
      {"upsample", upsample_reference},
      {"top_k_slots", top_k_slots_reference},
      {"top_k_weights", top_k_weights_reference},
      {"top_k_weights_grad", top_k_weights_grad_reference},
  };
  return table;
}

}  // namespace

std::vector<Values> reference(const OpDef& op, const OpCall& call, std::span<const Values> operands,
                              const RunPoint& point) {
  return meanings().at(op.name)({op, call.operands, call.attributes, operands, point});
}

}  // namespace alpa
