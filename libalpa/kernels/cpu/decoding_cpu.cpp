#include <algorithm>
#include <cmath>

#include "libalpa/kernels/cache_extents.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// The attention of one sample and one group of heads.
template <class T>
class CachedGroup {
 public:
  /// `scratch`: places and width floats.
  CachedGroup(const CacheExtents& e, const T* keys, const T* values, float* scratch)
      : e_(e), keys_(keys), values_(values), scores_(scratch), sums_(scratch + e.places) {}

  /// One query that sees the first `seen` places.
  void run(const T* query, std::int64_t seen, T* output) const {
    float largest = -INFINITY;
    for (std::int64_t t = 0; t < seen; ++t) {
      const T* key = keys_ + t * e_.groups * e_.width;
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (std::int64_t d = 0; d < e_.width; ++d) dot += to_float(query[d]) * to_float(key[d]);
      scores_[t] = dot * e_.scale;
      largest = std::max(largest, scores_[t]);
    }
    float total = 0;
    for (std::int64_t t = 0; t < seen; ++t) total += scores_[t] = std::exp(scores_[t] - largest);
    std::fill_n(sums_, e_.width, 0.0f);
    for (std::int64_t t = 0; t < seen; ++t) {
      const T* value = values_ + t * e_.groups * e_.width;
      const float share = scores_[t] / total;
#pragma omp simd
      for (std::int64_t d = 0; d < e_.width; ++d) sums_[d] += share * to_float(value[d]);
    }
    round_numbers(sums_, e_.width, output);
  }

 private:
  const CacheExtents& e_;
  const T *keys_, *values_;
  float *scores_, *sums_;
};

template <class T>
void attend_to_cache(const CacheExtents& e, const KernelCall& call, std::int64_t sample, std::int64_t group) {
  const std::int64_t cache = (sample * e.places * e.groups + group) * e.width;
  T *keys = call.result<T>(1) + cache, *values = call.result<T>(2) + cache;
  const std::int32_t* places = call.operand<std::int32_t>(5) + sample * e.queries;
  for (std::int64_t i = 0; i < e.queries; ++i) {
    if (places[i] < 0 || places[i] >= e.places) continue;
    const std::int64_t from = ((sample * e.queries + i) * e.groups + group) * e.width;
    std::copy_n(call.operand<T>(1) + from, e.width, keys + places[i] * e.groups * e.width);
    std::copy_n(call.operand<T>(2) + from, e.width, values + places[i] * e.groups * e.width);
  }
  const CachedGroup<T> cached(
      e, keys, values,
      static_cast<float*>(call.workspace) + (sample * e.groups + group) * (e.places + e.width));
  for (std::int64_t i = 0; i < e.queries; ++i)
    for (std::int64_t r = 0; r < e.share; ++r) {
      const std::int64_t at = ((sample * e.queries + i) * e.heads + group * e.share + r) * e.width;
      T* output = call.result<T>(0) + at;
      if (places[i] < 0)
        std::fill_n(output, e.width, from_float<T>(0));
      else
        cached.run(call.operand<T>(0) + at, std::min<std::int64_t>(places[i] + 1, e.places), output);
    }
}

}  // namespace

std::unique_ptr<Kernel> cached_attention_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ttttti->ttt")) return nullptr;
  const CacheExtents e(shape);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([e](const KernelCall& call) {
      const std::int64_t grain = row_grain(e.queries * e.share * e.places * e.width);
      for_ranges(e.samples * e.groups, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) attend_to_cache<T>(e, call, i / e.groups, i % e.groups);
      });
    });
  });
}

std::unique_ptr<Kernel> store_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  return host_kernel([bytes = byte_count(shape.results[0])](const KernelCall& call) {
    std::copy_n(call.operand<std::byte>(1), bytes, call.result<std::byte>(0));
  });
}

}  // namespace alpa::ops
