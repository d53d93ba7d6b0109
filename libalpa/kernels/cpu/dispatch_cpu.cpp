#include <algorithm>
#include <cstring>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/kernels/weighted_rows.h"

namespace alpa::ops {
namespace {

/// Extents of the experts' rows [e g c d] in a tile, and of the slots [g s k].
struct Experts {
  std::int64_t experts, groups, capacity, width, tokens, choices;

  Experts(const TensorType& rows, const TensorType& slots)
      : experts(rows.shape[0]),
        groups(rows.shape[1]),
        capacity(rows.shape[2]),
        width(rows.shape[3]),
        tokens(slots.shape[1]),
        choices(slots.shape[2]) {}

  std::int64_t rows() const { return experts * groups * capacity; }
  std::int64_t all_tokens() const { return groups * tokens; }

  /// Where in the tile a slot of group g lies; -1 outside it.
  std::int64_t row_of(std::int32_t slot, std::int64_t g, std::int64_t first_expert) const {
    if (slot < 0) return -1;
    const std::int64_t expert = slot / capacity - first_expert;
    return expert < 0 || expert >= experts ? -1 : (expert * groups + g) * capacity + slot % capacity;
  }
};

/// The place in the slots that fills each row of the tile; -1: none.
void find_sources(const Experts& x, const std::int32_t* slots, std::int64_t first_expert,
                  std::vector<std::int32_t>& sources) {
  std::fill(sources.begin(), sources.end(), -1);
  const std::int64_t per_group = x.tokens * x.choices;
  for (std::int64_t i = 0; i < x.groups * per_group; ++i) {
    const std::int64_t row = x.row_of(slots[i], i / per_group, first_expert);
    if (row >= 0) sources[row] = static_cast<std::int32_t>(i);
  }
}

/// to[token] = sum over its slots in the tile of weight * row; all weights are 1 where there are none.
template <class T>
void sum_rows(const Experts& x, const T* rows, const std::int32_t* slots, const float* weights,
              std::int64_t first_expert, std::int64_t token, T* to) {
  sum_weighted_rows(x.width, to + token * x.width, [&](const auto& add) {
    for (std::int64_t i = token * x.choices; i < (token + 1) * x.choices; ++i) {
      const std::int64_t row = x.row_of(slots[i], token / x.tokens, first_expert);
      if (row >= 0) add(rows + row * x.width, weights ? weights[i] : 1.0f);
    }
  });
}

template <class T>
float product_of(const T* a, const T* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += to_float(a[i]) * to_float(b[i]);
  return sum;
}

/// combine (with operand 2 as weights) and the gradient of dispatch (without).
std::unique_ptr<Kernel> sums_of_rows(const KernelShape& shape) {
  const Experts x(shape.operands[0], shape.operands[1]);
  const bool weighted = shape.operands.size() == 3;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* rows = call.operand<T>(0);
      const std::int32_t* slots = call.operand<std::int32_t>(1);
      const float* weights = weighted ? call.operand<float>(2) : nullptr;
      T* to = call.result<T>(0);
      const std::int64_t first_expert = origin_of(call.operands[0], 0);
      for_ranges(x.all_tokens(), row_grain(x.width * x.choices), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t token = begin; token < end; ++token)
          sum_rows(x, rows, slots, weights, first_expert, token, to);
      });
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> dropped_cpu(const KernelShape& shape) {
  if (!types_match(shape, "i->f")) return nullptr;
  const std::int64_t tokens = element_count(shape.results[0].shape), choices = shape.operands[0].shape[2];
  return host_kernel([=](const KernelCall& call) {
    const std::int32_t* slots = call.operand<std::int32_t>(0);
    float* counts = call.result<float>(0);
    for (std::int64_t t = 0; t < tokens; ++t)
      counts[t] = static_cast<float>(std::count(slots + t * choices, slots + (t + 1) * choices, -1));
  });
}

std::unique_ptr<Kernel> dispatch_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ti->t")) return nullptr;
  const Experts x(shape.results[0], shape.operands[1]);
  const std::int64_t bytes = x.width * dtype_bytes(shape.operands[0].dtype);
  std::vector<std::int32_t> sources(static_cast<std::size_t>(x.rows()));
  return host_kernel([=, sources = std::move(sources)](const KernelCall& call) mutable {
    find_sources(x, call.operand<std::int32_t>(1), origin_of(call.results[0], 0), sources);
    const auto* tokens = call.operand<std::byte>(0);
    auto* rows = call.result<std::byte>(0);
    const std::int32_t* from = sources.data();
    for_ranges(x.rows(), row_grain(bytes), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        if (from[r] < 0)
          std::memset(rows + r * bytes, 0, static_cast<std::size_t>(bytes));
        else
          std::memcpy(rows + r * bytes, tokens + from[r] / x.choices * bytes,
                      static_cast<std::size_t>(bytes));
    });
  });
}

std::unique_ptr<Kernel> dispatch_grad_cpu(const KernelShape& shape) {
  return types_match(shape, "ti->t") ? sums_of_rows(shape) : nullptr;
}

std::unique_ptr<Kernel> combine_cpu(const KernelShape& shape) {
  return types_match(shape, "tif->t") ? sums_of_rows(shape) : nullptr;
}

std::unique_ptr<Kernel> combine_grad_rows_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tif->t")) return nullptr;
  const Experts x(shape.results[0], shape.operands[1]);
  std::vector<std::int32_t> sources(static_cast<std::size_t>(x.rows()));
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, sources = std::move(sources)](const KernelCall& call) mutable {
      find_sources(x, call.operand<std::int32_t>(1), origin_of(call.results[0], 0), sources);
      const T* dtokens = call.operand<T>(0);
      const float* weights = call.operand<float>(2);
      T* drows = call.result<T>(0);
      const std::int32_t* from = sources.data();
      for_ranges(x.rows(), row_grain(x.width), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const float weight = from[r] < 0 ? 0.0f : weights[from[r]];
          const T* token = dtokens + std::max(from[r], 0) / x.choices * x.width;
          T* row = drows + r * x.width;
          if (from[r] < 0)
            std::fill(row, row + x.width, T{});
          else
#pragma omp simd
            for (std::int64_t c = 0; c < x.width; ++c) row[c] = from_float<T>(weight * to_float(token[c]));
        }
      });
    });
  });
}

std::unique_ptr<Kernel> combine_grad_weights_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tti->f")) return nullptr;
  const Experts x(shape.operands[1], shape.operands[2]);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T *dtokens = call.operand<T>(0), *rows = call.operand<T>(1);
      const std::int32_t* slots = call.operand<std::int32_t>(2);
      float* dweights = call.result<float>(0);
      const std::int64_t first_expert = origin_of(call.operands[1], 0);
      for_ranges(x.all_tokens(), row_grain(x.width * x.choices), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin * x.choices; i < end * x.choices; ++i) {
          const std::int64_t token = i / x.choices, row = x.row_of(slots[i], token / x.tokens, first_expert);
          dweights[i] = row < 0 ? 0.0f : product_of(dtokens + token * x.width, rows + row * x.width, x.width);
        }
      });
    });
  });
}

}  // namespace alpa::ops
