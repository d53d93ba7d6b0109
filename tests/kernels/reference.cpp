#include "tests/kernels/reference.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "libalpa/base/philox.h"

namespace alpa {
namespace {

struct Call {
  const OpDef& op;
  std::span<const TensorType> types;
  const Attributes& attributes;
  std::span<const Values> in;
  const RunPoint& point;

  std::size_t extent(std::size_t operand, std::size_t dimension) const {
    return static_cast<std::size_t>(types[operand].shape[dimension]);
  }
  std::size_t width(std::size_t operand) const { return static_cast<std::size_t>(types[operand].shape.back()); }
};
using Results = std::vector<Values>;

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
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// One loop over all factors at once: einsum and rearrange.
Results contract(const Call& c) {
  const ShardingRule rule = rule_of(c.op, {c.types, c.attributes});
  std::int64_t points = 1;
  for (const Factor& factor : rule.factors) points *= factor.size;
  Values result(static_cast<std::size_t>(element_count(result_shape(rule, 0))), 0.0);
  std::vector<std::int64_t> place(rule.factors.size());
  const auto index = [&](const std::vector<DimensionFactors>& dimensions) {
    std::int64_t at = 0;
    for (const DimensionFactors& dimension : dimensions)
      for (const int f : dimension) at = at * rule.factors[static_cast<std::size_t>(f)].size + place[static_cast<std::size_t>(f)];
    return static_cast<std::size_t>(at);
  };
  for (std::int64_t point = 0; point < points; ++point) {
    std::int64_t rest = point;
    for (std::size_t f = 0; f < place.size(); ++f) {
      place[f] = rest % rule.factors[f].size;
      rest /= rule.factors[f].size;
    }
    double product = 1;
    for (std::size_t i = 0; i < c.in.size(); ++i) product *= c.in[i][index(rule.operands[i])];
    result[index(rule.results[0])] += product;
  }
  return {result};
}

Results bias_add(const Call& c) {
  Values y = c.in[0];
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += c.in[1][i % c.in[1].size()];
  return {y};
}

Results reduce_leading(const Call& c) {
  std::size_t width = 1;
  const Shape& shape = c.types[0].shape;
  for (std::size_t d = shape.size() - static_cast<std::size_t>(c.attributes.integer("keep")); d < shape.size(); ++d)
    width *= c.extent(0, d);
  Values sums(width, 0.0);
  for (std::size_t i = 0; i < c.in[0].size(); ++i) sums[i % width] += c.in[0][i];
  return {sums};
}

Results dropout(const Call& c) {
  const double rate = c.attributes.number("rate");
  const std::uint64_t key = philox_key(c.point.seed, static_cast<std::uint64_t>(c.attributes.integer("stream", 0)));
  const std::size_t per_sample = c.in[0].size() / c.extent(0, 0);
  Values y = c.in[0];
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto sample = static_cast<std::uint64_t>(c.point.first_sample) + i / per_sample;
    const float u = philox_uniform_at(key, (static_cast<std::uint64_t>(c.point.step) << 32) + sample, i % per_sample);
    y[i] = u < static_cast<float>(rate) ? 0.0 : y[i] / (1 - rate);
  }
  return {y};
}

Results layer_norm(const Call& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values y(c.in[0].size()), means, scales;
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < n; ++i) mean += c.in[0][r * n + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) variance += std::pow(c.in[0][r * n + i] - mean, 2) / static_cast<double>(n);
    means.push_back(mean);
    scales.push_back(1 / std::sqrt(variance + c.attributes.number("epsilon")));
    for (std::size_t i = 0; i < n; ++i) y[r * n + i] = (c.in[0][r * n + i] - mean) * scales[r] * c.in[1][i] + c.in[2][i];
  }
  return {y, means, scales};
}

Results layer_norm_grad(const Call& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values dx(c.in[0].size()), dgain(n, 0.0), dbias(n, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    const double mean = c.in[3][r], scale = c.in[4][r];
    double mean_g = 0, mean_gh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double dy = c.in[0][r * n + i], h = (c.in[1][r * n + i] - mean) * scale;
      dgain[i] += dy * h;
      dbias[i] += dy;
      mean_g += dy * c.in[2][i] / static_cast<double>(n);
      mean_gh += dy * c.in[2][i] * h / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double h = (c.in[1][r * n + i] - mean) * scale;
      dx[r * n + i] = scale * (c.in[0][r * n + i] * c.in[2][i] - mean_g - h * mean_gh);
    }
  }
  return {dx, dgain, dbias};
}

Results rms_norm(const Call& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values y(c.in[0].size()), scales;
  for (std::size_t r = 0; r < rows; ++r) {
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) square += c.in[0][r * n + i] * c.in[0][r * n + i] / static_cast<double>(n);
    scales.push_back(1 / std::sqrt(square + c.attributes.number("epsilon")));
    for (std::size_t i = 0; i < n; ++i) y[r * n + i] = c.in[0][r * n + i] * scales[r] * c.in[1][i];
  }
  return {y, scales};
}

Results rms_norm_grad(const Call& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values dx(c.in[0].size()), dgain(n, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    const double scale = c.in[3][r];
    double mean_gh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double dy = c.in[0][r * n + i], h = c.in[1][r * n + i] * scale;
      dgain[i] += dy * h;
      mean_gh += dy * c.in[2][i] * h / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i)
      dx[r * n + i] = scale * (c.in[0][r * n + i] * c.in[2][i] - c.in[1][r * n + i] * scale * mean_gh);
  }
  return {dx, dgain};
}

Results embedding(const Call& c) {
  const std::size_t d = c.width(0);
  Values rows;
  for (const double id : c.in[1])
    for (std::size_t i = 0; i < d; ++i)
      rows.push_back(id >= 0 && id < static_cast<double>(c.extent(0, 0)) ? c.in[0][static_cast<std::size_t>(id) * d + i] : 0.0);
  return {rows};
}

Results embedding_grad(const Call& c) {
  const std::size_t d = c.width(0);
  const auto v = static_cast<std::size_t>(c.attributes.integer("size_v"));
  Values table(v * d, 0.0);
  for (std::size_t i = 0; i < c.in[1].size(); ++i)
    if (c.in[1][i] >= 0 && c.in[1][i] < static_cast<double>(v))
      for (std::size_t j = 0; j < d; ++j) table[static_cast<std::size_t>(c.in[1][i]) * d + j] += c.in[0][i * d + j];
  return {table};
}

/// Query [b, s, heads, k], key [b, t, groups, k]; heads are (groups, share).
struct Heads {
  std::size_t b, s, heads, k, t, groups;
  bool causal;
  double scale;

  Heads(const Call& c, std::size_t query, std::size_t key)
      : b(c.extent(query, 0)), s(c.extent(query, 1)), heads(c.extent(query, 2)), k(c.extent(query, 3)),
        t(c.extent(key, 1)), groups(c.extent(key, 2)), causal(c.attributes.integer("causal", 0) != 0),
        scale(c.attributes.number("scale", 1 / std::sqrt(static_cast<double>(k)))) {}

  std::size_t q(std::size_t i, std::size_t row, std::size_t h, std::size_t d) const { return ((i * s + row) * heads + h) * k + d; }
  std::size_t kv(std::size_t i, std::size_t row, std::size_t h, std::size_t d) const {
    return ((i * t + row) * groups + h / (heads / groups)) * k + d;
  }
  std::size_t row(std::size_t i, std::size_t r, std::size_t h) const { return (i * heads + h) * s + r; }
  bool sees(std::size_t r, std::size_t key) const { return !causal || key <= r; }

  double score(const Values& query, const Values& key, std::size_t i, std::size_t r, std::size_t h, std::size_t j) const {
    double sum = 0;
    for (std::size_t d = 0; d < k; ++d) sum += query[q(i, r, h, d)] * key[kv(i, j, h, d)];
    return sum * scale;
  }

  void for_rows(const std::function<void(std::size_t, std::size_t, std::size_t)>& body) const {
    for (std::size_t i = 0; i < b; ++i)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t r = 0; r < s; ++r) body(i, r, h);
  }
};

Results attention(const Call& c) {
  const Heads a(c, 0, 1);
  Values output(c.in[0].size(), 0.0), log_sums(a.b * a.heads * a.s);
  a.for_rows([&](std::size_t i, std::size_t r, std::size_t h) {
    double sum = 0;
    for (std::size_t j = 0; j < a.t; ++j)
      if (a.sees(r, j)) sum += std::exp(a.score(c.in[0], c.in[1], i, r, h, j));
    log_sums[a.row(i, r, h)] = std::log(sum);
    for (std::size_t j = 0; j < a.t; ++j) {
      if (!a.sees(r, j)) continue;
      const double p = std::exp(a.score(c.in[0], c.in[1], i, r, h, j)) / sum;
      for (std::size_t d = 0; d < a.k; ++d) output[a.q(i, r, h, d)] += p * c.in[2][a.kv(i, j, h, d)];
    }
  });
  return {output, log_sums};
}

Results attention_grad(const Call& c) {
  const Values &dy = c.in[0], &query = c.in[1], &key = c.in[2], &value = c.in[3], &output = c.in[4];
  const Heads a(c, 1, 2);
  Values dquery(query.size(), 0.0), dkey(key.size(), 0.0), dvalue(value.size(), 0.0);
  a.for_rows([&](std::size_t i, std::size_t r, std::size_t h) {
    double delta = 0;
    for (std::size_t d = 0; d < a.k; ++d) delta += dy[a.q(i, r, h, d)] * output[a.q(i, r, h, d)];
    for (std::size_t j = 0; j < a.t; ++j) {
      if (!a.sees(r, j)) continue;
      const double p = std::exp(a.score(query, key, i, r, h, j) - c.in[5][a.row(i, r, h)]);
      double dp = 0;
      for (std::size_t d = 0; d < a.k; ++d) dp += dy[a.q(i, r, h, d)] * value[a.kv(i, j, h, d)];
      const double dscore = p * (dp - delta) * a.scale;
      for (std::size_t d = 0; d < a.k; ++d) {
        dvalue[a.kv(i, j, h, d)] += p * dy[a.q(i, r, h, d)];
        dquery[a.q(i, r, h, d)] += dscore * key[a.kv(i, j, h, d)];
        dkey[a.kv(i, j, h, d)] += dscore * query[a.q(i, r, h, d)];
      }
    }
  });
  return {dquery, dkey, dvalue};
}

Results rotary(const Call& c) {
  const std::size_t s = c.extent(0, 1), h = c.extent(0, 2), k = c.extent(0, 3);
  const double direction = c.attributes.integer("inverse", 0) ? -1 : 1;
  Values y(c.in[0].size());
  for (std::size_t row = 0; row < y.size() / k; ++row)
    for (std::size_t i = 0; i < k / 2; ++i) {
      const auto position = static_cast<double>(row / h % s);
      const double angle =
          direction * position / std::pow(c.attributes.number("theta"), 2 * static_cast<double>(i) / static_cast<double>(k));
      const double a = c.in[0][row * k + i], b = c.in[0][row * k + i + k / 2];
      y[row * k + i] = a * std::cos(angle) - b * std::sin(angle);
      y[row * k + i + k / 2] = a * std::sin(angle) + b * std::cos(angle);
    }
  return {y};
}

Results row_max(const Call& c) {
  Values maxima(c.in[0].size() / c.width(0), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < c.in[0].size(); ++i) maxima[i / c.width(0)] = std::max(maxima[i / c.width(0)], c.in[0][i]);
  return {maxima};
}

Results row_sum_exp(const Call& c) {
  Values sums(c.in[1].size(), 0.0);
  for (std::size_t i = 0; i < c.in[0].size(); ++i) sums[i / c.width(0)] += std::exp(c.in[0][i] - c.in[1][i / c.width(0)]);
  return {sums};
}

Results cross_entropy(const Call& c) {
  Values losses;
  for (std::size_t r = 0; r < c.in[1].size(); ++r) {
    const double target = c.in[1][r];
    losses.push_back(target < 0 ? 0.0
                                : std::log(c.in[3][r]) + c.in[2][r] - c.in[0][r * c.width(0) + static_cast<std::size_t>(target)]);
  }
  return {losses};
}

Results cross_entropy_grad(const Call& c) {
  Values dlogits(c.in[0].size());
  for (std::size_t i = 0; i < dlogits.size(); ++i) {
    const std::size_t r = i / c.width(0);
    if (c.in[1][r] < 0) continue;
    const double one_hot = c.in[1][r] == static_cast<double>(i % c.width(0)) ? 1 : 0;
    dlogits[i] = (std::exp(c.in[0][i] - c.in[2][r]) / c.in[3][r] - one_hot) * c.in[4][r];
  }
  return {dlogits};
}

double clip_factor(const Call& c, double square_norm) {
  const double clip = c.attributes.number("clip", 0);
  return clip > 0 && std::sqrt(square_norm) > clip ? clip / std::sqrt(square_norm) : 1;
}

Results adamw(const Call& c) {
  Values w = c.in[0], m = c.in[2], v = c.in[3];
  const double b1 = c.attributes.number("beta1"), b2 = c.attributes.number("beta2"), factor = clip_factor(c, c.in[5][0]);
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
  const double factor = clip_factor(c, c.in[4][0]);
  for (std::size_t i = 0; i < w.size(); ++i) {
    v[i] = c.attributes.number("momentum") * v[i] + c.in[1][i] * factor + c.attributes.number("weight_decay") * w[i];
    w[i] -= c.in[3][0] * v[i];
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
      {"adamw", adamw},
      {"adamw_master", adamw},
      {"add", [](const Call& c) { return map2(c, [](double x, double y) { return x + y; }); }},
      {"attention", attention},
      {"attention_grad", attention_grad},
      {"bias_add", bias_add},
      {"cross_entropy", cross_entropy},
      {"cross_entropy_grad", cross_entropy_grad},
      {"dropout", dropout},
      {"einsum", contract},
      {"embedding", embedding},
      {"embedding_grad", embedding_grad},
      {"expand_like", [](const Call& c) { return Results{Values(c.in[1].size(), c.in[0][0])}; }},
      {"gelu", [](const Call& c) { return map1(c, gelu); }},
      {"gelu_grad", [](const Call& c) { return map2(c, [](double dy, double x) { return dy * gelu_slope(x); }); }},
      {"layer_norm", layer_norm},
      {"layer_norm_grad", layer_norm_grad},
      {"mul", [](const Call& c) { return map2(c, [](double x, double y) { return x * y; }); }},
      {"rearrange", contract},
      {"reduce_leading", reduce_leading},
      {"reduce_sum", reduce_sum},
      {"relu", [](const Call& c) { return map1(c, [](double x) { return x > 0 ? x : 0; }); }},
      {"relu_grad", [](const Call& c) { return map2(c, [](double dy, double x) { return x > 0 ? dy : 0; }); }},
      {"rms_norm", rms_norm},
      {"rms_norm_grad", rms_norm_grad},
      {"rotary", rotary},
      {"row_max", row_max},
      {"row_sum_exp", row_sum_exp},
      {"scale", [](const Call& c) { return map1(c, [&](double x) { return x * c.attributes.number("factor"); }); }},
      {"sgd", sgd},
      {"sgd_master", sgd},
      {"silu", [](const Call& c) { return map1(c, [](double x) { return x * logistic(x); }); }},
      {"silu_grad",
       [](const Call& c) {
         return map2(c, [](double dy, double x) { return dy * logistic(x) * (1 + x * (1 - logistic(x))); });
       }},
      {"sum_squares", sum_squares},
  };
  return table;
}

}  // namespace

std::vector<Values> reference(const OpDef& op, const OpCall& call, std::span<const Values> operands, const RunPoint& point) {
  return meanings().at(op.name)({op, call.operands, call.attributes, operands, point});
}

}  // namespace alpa
