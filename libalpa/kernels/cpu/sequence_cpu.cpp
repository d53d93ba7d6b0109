#include <algorithm>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/kernels/weighted_rows.h"

namespace alpa::ops {
namespace {

/// to = the weighted sum of the rows of one sample
template <class T>
void pool_rows(const T* rows, const float* weights, std::int64_t steps, std::int64_t width, T* to) {
  sum_weighted_rows(width, to, [&](const auto& add) {
    for (std::int64_t t = 0; t < steps; ++t)
      if (weights[t] != 0.0f) add(rows + t * width, weights[t]);
  });
}

}  // namespace

std::unique_ptr<Kernel> document_starts_cpu(const KernelShape& shape) {
  if (!types_match(shape, "i->i")) return nullptr;
  const std::int64_t batch = shape.operands[0].shape[0], steps = shape.operands[0].shape[1];
  const std::int64_t end = shape.attributes.integer("end");
  return host_kernel([=](const KernelCall& call) {
    const auto* token = call.operand<std::int32_t>(0);
    auto* start = call.result<std::int32_t>(0);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int32_t first = 0;
      for (std::int32_t s = 0; s < steps; ++s) {
        *start++ = first;
        if (*token++ == end) first = s + 1;
      }
    }
  });
}

std::unique_ptr<Kernel> step_weights_cpu(const KernelShape& shape) {
  if (!types_match(shape, "i->f")) return nullptr;
  const std::int64_t batch = shape.results[0].shape[0], steps = shape.results[0].shape[1];
  const bool mean = shape.attributes.integer("mean", 0) != 0;
  return host_kernel([=](const KernelCall& call) {
    const std::int32_t* lengths = call.operand<std::int32_t>(0);
    float* weights = call.result<float>(0);
    const Tile& tile = call.results[0];
    const std::int64_t first = origin_of(tile, 1), whole = tile.whole.empty() ? steps : tile.whole[1];
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::int64_t length = std::clamp<std::int64_t>(lengths[i], 0, whole);
      const std::int64_t inside = std::clamp<std::int64_t>(length - first, 0, steps);
      float* row = weights + i * steps;
      std::fill(row, row + inside, mean ? 1.0f / static_cast<float>(length) : 1.0f);
      std::fill(row + inside, row + steps, 0.0f);
    }
  });
}

std::unique_ptr<Kernel> pool_steps_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tf->t")) return nullptr;
  const std::int64_t batch = shape.operands[1].shape[0], steps = shape.operands[1].shape[1];
  const std::int64_t width = element_count(shape.results[0].shape) / std::max<std::int64_t>(batch, 1);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* x = call.operand<T>(0);
      const float* weights = call.operand<float>(1);
      T* y = call.result<T>(0);
      for_ranges(batch, row_grain(steps * width), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b)
          pool_rows(x + b * steps * width, weights + b * steps, steps, width, y + b * width);
      });
    });
  });
}

std::unique_ptr<Kernel> pool_steps_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tf->t")) return nullptr;
  const std::int64_t batch = shape.operands[1].shape[0], steps = shape.operands[1].shape[1];
  const std::int64_t width = element_count(shape.operands[0].shape) / std::max<std::int64_t>(batch, 1);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* dy = call.operand<T>(0);
      const float* weights = call.operand<float>(1);
      T* dx = call.result<T>(0);
      for_ranges(batch * steps, row_grain(width), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const T* from = dy + r / steps * width;
          T* to = dx + r * width;
          const float weight = weights[r];
#pragma omp simd
          for (std::int64_t c = 0; c < width; ++c) to[c] = from_float<T>(weight * to_float(from[c]));
        }
      });
    });
  });
}

}  // namespace alpa::ops
