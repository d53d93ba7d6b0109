#include <cmath>
#include <functional>

#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

/// Query [b, s, heads, k], key [b, t, groups, k]; heads are (groups, share).
struct Heads {
  std::size_t b, s, heads, k, t, groups;
  bool causal;
  double scale;
  const Values* first_keys;  ///< [b, s], where there are some

  Heads(const ReferenceCall& c, std::size_t query, std::size_t key, std::size_t first)
      : b(c.extent(query, 0)),
        s(c.extent(query, 1)),
        heads(c.extent(query, 2)),
        k(c.extent(query, 3)),
        t(c.extent(key, 1)),
        groups(c.extent(key, 2)),
        causal(c.attributes.integer("causal", 0) != 0),
        scale(c.attributes.number("scale", 1 / std::sqrt(static_cast<double>(k)))),
        first_keys(c.in.size() > first ? &c.in[first] : nullptr) {}

  std::size_t q(std::size_t i, std::size_t row, std::size_t h, std::size_t d) const {
    return ((i * s + row) * heads + h) * k + d;
  }
  std::size_t kv(std::size_t i, std::size_t row, std::size_t h, std::size_t d) const {
    return ((i * t + row) * groups + h / (heads / groups)) * k + d;
  }
  std::size_t row(std::size_t i, std::size_t r, std::size_t h) const { return (i * heads + h) * s + r; }
  bool sees(std::size_t i, std::size_t r, std::size_t key) const {
    return (!causal || key <= r) && (!first_keys || static_cast<double>(key) >= (*first_keys)[i * s + r]);
  }

  double score(const Values& query, const Values& key, std::size_t i, std::size_t r, std::size_t h,
               std::size_t j) const {
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

}  // namespace

ReferenceResults attention_reference(const ReferenceCall& c) {
  const Heads a(c, 0, 1, 3);
  Values output(c.in[0].size(), 0.0), log_sums(a.b * a.heads * a.s);
  a.for_rows([&](std::size_t i, std::size_t r, std::size_t h) {
    double sum = 0;
    for (std::size_t j = 0; j < a.t; ++j)
      if (a.sees(i, r, j)) sum += std::exp(a.score(c.in[0], c.in[1], i, r, h, j));
    log_sums[a.row(i, r, h)] = std::log(sum);
    for (std::size_t j = 0; j < a.t; ++j) {
      if (!a.sees(i, r, j)) continue;
      const double p = std::exp(a.score(c.in[0], c.in[1], i, r, h, j)) / sum;
      for (std::size_t d = 0; d < a.k; ++d) output[a.q(i, r, h, d)] += p * c.in[2][a.kv(i, j, h, d)];
    }
  });
  return {output, log_sums};
}

ReferenceResults attention_grad_reference(const ReferenceCall& c) {
  const Values &dy = c.in[0], &query = c.in[1], &key = c.in[2], &value = c.in[3], &output = c.in[4];
  const Heads a(c, 1, 2, 6);
  Values dquery(query.size(), 0.0), dkey(key.size(), 0.0), dvalue(value.size(), 0.0);
  a.for_rows([&](std::size_t i, std::size_t r, std::size_t h) {
    double delta = 0;
    for (std::size_t d = 0; d < a.k; ++d) delta += dy[a.q(i, r, h, d)] * output[a.q(i, r, h, d)];
    for (std::size_t j = 0; j < a.t; ++j) {
      if (!a.sees(i, r, j)) continue;
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

ReferenceResults document_starts_reference(const ReferenceCall& c) {
  const std::size_t steps = c.extent(0, 1);
  Values starts;
  for (std::size_t i = 0; i < c.in[0].size(); ++i) {
    std::size_t start = i % steps;
    while (start > 0 && c.in[0][i / steps * steps + start - 1] != c.attributes.number("end")) --start;
    starts.push_back(static_cast<double>(start));
  }
  return {starts};
}

ReferenceResults rotary_reference(const ReferenceCall& c) {
  const std::size_t s = c.extent(0, 1), h = c.extent(0, 2), k = c.extent(0, 3);
  const double direction = c.attributes.integer("inverse", 0) ? -1 : 1;
  Values y(c.in[0].size());
  for (std::size_t row = 0; row < y.size() / k; ++row)
    for (std::size_t i = 0; i < k / 2; ++i) {
      const double position =
          c.in.size() > 1 ? std::max(c.in[1][row / h], 0.0) : static_cast<double>(row / h % s);
      const double angle =
          direction * position /
          std::pow(c.attributes.number("theta"), 2 * static_cast<double>(i) / static_cast<double>(k));
      const double a = c.in[0][row * k + i], b = c.in[0][row * k + i + k / 2];
      y[row * k + i] = a * std::cos(angle) - b * std::sin(angle);
      y[row * k + i + k / 2] = a * std::sin(angle) + b * std::cos(angle);
    }
  return {y};
}

ReferenceResults cached_attention_reference(const ReferenceCall& c) {
  const std::size_t samples = c.extent(0, 0), queries = c.extent(0, 1), heads = c.extent(0, 2);
  const std::size_t places = c.extent(3, 1), groups = c.extent(3, 2), width = c.extent(0, 3);
  const auto cached = [&](std::size_t b, std::size_t t, std::size_t g) {
    return ((b * places + t) * groups + g) * width;
  };
  Values keys = c.in[3], values = c.in[4], output(c.in[0].size(), 0.0);
  for (std::size_t b = 0; b < samples; ++b)
    for (std::size_t i = 0; i < queries; ++i) {
      const double place = c.in[5][b * queries + i];
      if (place < 0) continue;
      for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t d = 0; d < width; ++d) {
          const std::size_t from = ((b * queries + i) * groups + g) * width + d;
          keys[cached(b, static_cast<std::size_t>(place), g) + d] = c.in[1][from];
          values[cached(b, static_cast<std::size_t>(place), g) + d] = c.in[2][from];
        }
    }
  const double scale = c.attributes.number("scale", 1 / std::sqrt(static_cast<double>(width)));
  for (std::size_t row = 0; row < samples * queries * heads; ++row) {
    const std::size_t token = row / heads, b = token / queries, g = row % heads / (heads / groups);
    std::vector<double> shares;
    double total = 0;
    for (std::size_t t = 0; static_cast<double>(t) <= c.in[5][token]; ++t) {
      double dot = 0;
      for (std::size_t d = 0; d < width; ++d) dot += c.in[0][row * width + d] * keys[cached(b, t, g) + d];
      shares.push_back(std::exp(dot * scale));
      total += shares.back();
    }
    for (std::size_t t = 0; t < shares.size(); ++t)
      for (std::size_t d = 0; d < width; ++d)
        output[row * width + d] += shares[t] / total * values[cached(b, t, g) + d];
  }
  return {output, keys, values};
}

}  // namespace alpa
