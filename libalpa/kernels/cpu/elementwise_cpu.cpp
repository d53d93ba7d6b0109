#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/piece_sums.h"
#include "libalpa/kernels/cpu/vector_math.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// y[i] = f(x[i])
template <class Function>
std::unique_ptr<Kernel> map(const KernelShape& shape, Function f) {
  if (!types_match(shape, "t->t")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* x = call.operand<T>(0);
      T* y = call.result<T>(0);
      for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) y[i] = from_float<T>(f(to_float(x[i])));
      });
    });
  });
}

/// z[i] = f(x[i], y[i])
template <class Function>
std::unique_ptr<Kernel> map_pairs(const KernelShape& shape, Function f) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T *x = call.operand<T>(0), *y = call.operand<T>(1);
      T* z = call.result<T>(0);
      for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) z[i] = from_float<T>(f(to_float(x[i]), to_float(y[i])));
      });
    });
  });
}

constexpr float kGeluSlope = 1.59576912f;  // 2 sqrt(2/pi)
constexpr float kGeluCube = 1.59576912f * 0.044715f;

// 0.5 (1 + tanh(u)) = sigmoid(2u), which keeps its relative precision where tanh is near -1.
inline float gelu_gate(float x) { return sigmoid(x * (kGeluSlope + kGeluCube * x * x)); }

/// x * gate(x) and its slope.
struct Gelu {
  static float gate(float x) { return gelu_gate(x); }
  static float slope(float x, float gate) {
    return gate + x * gate * (1.0f - gate) * (kGeluSlope + 3.0f * kGeluCube * x * x);
  }
};

struct Silu {
  static float gate(float x) { return sigmoid(x); }
  static float slope(float x, float gate) { return gate * (1.0f + x * (1.0f - gate)); }
};

/// Numbers that gradient_of_gated() does at once. One loop over all of it takes GCC 12 twice as long.
constexpr std::int64_t kGatedNumbers = 512;

/// gradient[i] = dy[i] * slope at x[i]. What is in `x` stays.
template <class Curve, class T>
void gradient_of_gated(const T* dy, const float* x, std::int64_t count, float* gradient) {
  alignas(64) float gate[kGatedNumbers];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) gate[i] = Curve::gate(x[i]);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) gradient[i] = to_float(dy[i]) * Curve::slope(x[i], gate[i]);
}

/// to[i] = x[i] + y[i]
template <class T>
void add_numbers(const T* x, const T* y, std::int64_t count, float* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(x[i]) + to_float(y[i]);
}

/// (dy, x) -> dx
template <class Curve>
std::unique_ptr<Kernel> gated_gradient(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T *dy = call.operand<T>(0), *x = call.operand<T>(1);
      T* dx = call.result<T>(0);
      for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
        alignas(64) float at[kGatedNumbers], gradient[kGatedNumbers];
        for (std::int64_t i = begin; i < end; i += kGatedNumbers) {
          const std::int64_t n = std::min(kGatedNumbers, end - i);
          round_numbers(x + i, n, at);
          gradient_of_gated<Curve>(dy + i, at, n, gradient);
          round_numbers(gradient, n, dx + i);
        }
      });
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> add_cpu(const KernelShape& shape) {
  return map_pairs(shape, [](float x, float y) { return x + y; });
}

std::unique_ptr<Kernel> add_relu_cpu(const KernelShape& shape) {
  return map_pairs(shape, [](float x, float y) { return x + y > 0.0f ? x + y : 0.0f; });
}

std::unique_ptr<Kernel> mul_cpu(const KernelShape& shape) {
  return map_pairs(shape, [](float x, float y) { return x * y; });
}

std::unique_ptr<Kernel> scale_cpu(const KernelShape& shape) {
  const auto factor = static_cast<float>(shape.attributes.number("factor"));
  return map(shape, [factor](float x) { return factor * x; });
}

std::unique_ptr<Kernel> gelu_cpu(const KernelShape& shape) {
  return map(shape, [](float x) { return x * gelu_gate(x); });
}

std::unique_ptr<Kernel> gelu_grad_cpu(const KernelShape& shape) { return gated_gradient<Gelu>(shape); }

std::unique_ptr<Kernel> silu_cpu(const KernelShape& shape) {
  return map(shape, [](float x) { return x * sigmoid(x); });
}

std::unique_ptr<Kernel> silu_grad_cpu(const KernelShape& shape) { return gated_gradient<Silu>(shape); }

std::unique_ptr<Kernel> sigmoid_cpu(const KernelShape& shape) {
  return map(shape, [](float x) { return sigmoid(x); });
}

std::unique_ptr<Kernel> sigmoid_grad_cpu(const KernelShape& shape) {
  return map_pairs(shape, [](float dy, float y) { return dy * (y * (1.0f - y)); });
}

std::unique_ptr<Kernel> tanh_cpu(const KernelShape& shape) {
  return map(shape, [](float x) { return fast_tanh(x); });
}

std::unique_ptr<Kernel> tanh_grad_cpu(const KernelShape& shape) {
  return map_pairs(shape, [](float dy, float y) { return dy * (1.0f - y * y); });
}

std::unique_ptr<Kernel> relu_cpu(const KernelShape& shape) {
  return map(shape, [](float x) { return x > 0.0f ? x : 0.0f; });
}

std::unique_ptr<Kernel> relu_grad_cpu(const KernelShape& shape) {
  return map_pairs(shape, [](float dy, float y) { return y > 0.0f ? dy : 0.0f; });
}

namespace {

/// y[r, c] = f(x[r, c] + bias[c])
template <class Function>
std::unique_ptr<Kernel> map_with_bias(const KernelShape& shape, Function f) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const std::int64_t width = element_count(shape.operands[1].shape);
  const std::int64_t rows = element_count(shape.operands[0].shape) / width;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T *x = call.operand<T>(0), *bias = call.operand<T>(1);
      T* y = call.result<T>(0);
      for_ranges(rows, row_grain(width), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const T* row = x + r * width;
          T* to = y + r * width;
#pragma omp simd
          for (std::int64_t c = 0; c < width; ++c)
            to[c] = from_float<T>(f(to_float(row[c]) + to_float(bias[c])));
        }
      });
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> bias_add_cpu(const KernelShape& shape) {
  return map_with_bias(shape, [](float x) { return x; });
}

std::unique_ptr<Kernel> bias_gelu_cpu(const KernelShape& shape) {
  return map_with_bias(shape, [](float x) { return x * gelu_gate(x); });
}

namespace {

/// sums[c] += x[r, c] over rows [begin, end), four rows at a time to spare the traffic of `sums`.
template <class T>
void add_rows(const T* x, std::int64_t begin, std::int64_t end, std::int64_t width, float* sums) {
  std::int64_t r = begin;
  for (; r + 4 <= end; r += 4) {
    const T *x0 = x + r * width, *x1 = x0 + width, *x2 = x1 + width, *x3 = x2 + width;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c)
      sums[c] += (to_float(x0[c]) + to_float(x1[c])) + (to_float(x2[c]) + to_float(x3[c]));
  }
  for (; r < end; ++r) {
    const T* row = x + r * width;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) sums[c] += to_float(row[c]);
  }
}

}  // namespace

std::unique_ptr<Kernel> bias_gelu_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ttt->tt")) return nullptr;
  const std::int64_t width = element_count(shape.operands[2].shape);
  const std::int64_t rows = element_count(shape.operands[0].shape) / width;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, sums = PieceSums(rows, width)](const KernelCall& call) mutable {
      const T *dy = call.operand<T>(0), *x = call.operand<T>(1), *bias = call.operand<T>(2);
      T* dx = call.result<T>(0);
      for_pieces(rows, sums.count(), [=, &sums](std::int64_t piece, std::int64_t begin, std::int64_t end) {
        float* dbias = sums.cleared(piece);
        for (std::int64_t r = begin; r < end; ++r) {
          const T *from = dy + r * width, *row = x + r * width;
          T* to = dx + r * width;
          for (std::int64_t c = 0; c < width; c += kGatedNumbers) {
            const std::int64_t n = std::min(kGatedNumbers, width - c);
            alignas(64) float at[kGatedNumbers], gradient[kGatedNumbers];
            add_numbers(row + c, bias + c, n, at);
            gradient_of_gated<Gelu>(from + c, at, n, gradient);
            add_numbers(gradient, dbias + c, n, dbias + c);
            round_numbers(gradient, n, to + c);
          }
        }
      });
      sums.finish(0, width, call.result<T>(1), false);
    });
  });
}

std::unique_ptr<Kernel> reduce_leading_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->a")) return nullptr;
  const std::int64_t width = element_count(shape.results[0].shape);
  const std::int64_t rows = element_count(shape.operands[0].shape) / width;
  const bool to_f32 = shape.results[0].dtype == DType::f32;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, sums = PieceSums(rows, width)](const KernelCall& call) mutable {
      const T* x = call.operand<T>(0);
      for_pieces(rows, sums.count(), [=, &sums](std::int64_t piece, std::int64_t begin, std::int64_t end) {
        add_rows(x, begin, end, width, sums.cleared(piece));
      });
      if (to_f32)
        sums.finish(0, width, call.result<float>(0), call.accumulate);
      else
        sums.finish(0, width, call.result<Bfloat16>(0), call.accumulate);
    });
  });
}

}  // namespace alpa::ops
