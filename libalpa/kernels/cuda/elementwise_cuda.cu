#include "libalpa/kernels/cuda/column_sums.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

template <class T, class Function>
__global__ void map_elements(Function f, std::int64_t count, const T* x, T* y) {
  constexpr int together = kVector<T>;
  for_vectors<together>(share_of_grid(), count, before_vectors<together>(x, y),
                        [=](std::int64_t i, auto n) { store(y + i, each(f, load<n>(x + i))); });
}

template <class T, class Function>
__global__ void map_element_pairs(Function f, std::int64_t count, const T* x, const T* y, T* z) {
  constexpr int together = kVector<T>;
  for_vectors<together>(
      share_of_grid(), count, before_vectors<together>(x, y, z),
      [=](std::int64_t i, auto n) { store(z + i, each(f, load<n>(x + i), load<n>(y + i))); });
}

/// Division of 64-bit numbers takes as long as all the rest of what is done to a vector.
__device__ inline std::int64_t remainder_of(std::int64_t i, std::int64_t n) {
  return (i | n) >> 32 == 0 ? static_cast<std::uint32_t>(i) % static_cast<std::uint32_t>(n) : i % n;
}

/// y = f(x, bias)
template <class T, class Function>
__global__ void map_with_bias(Function f, std::int64_t count, std::int64_t width, const T* x, const T* bias,
                              T* y) {
  constexpr int together = kVector<T>;
  for_vectors<together>(share_of_grid(), count,
                        rows_are_vectors<together>(width, x, bias, y) ? 0 : kNoVectors,
                        [=](std::int64_t i, auto n) {
                          store(y + i, each(f, load<n>(x + i), load<n>(bias + remainder_of(i, width))));
                        });
}

/// y[i] = f(x[i])
template <class Function>
std::unique_ptr<Kernel> map(const KernelShape& shape, Function f) {
  if (!types_match(shape, "t->t")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape);
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for_vectors<kVector<T>>(count), kThreads, map_elements<T, Function>, f, count,
             call.operand<T>(0), call.result<T>(0));
    });
  });
}

/// z[i] = f(x[i], y[i])
template <class Function>
std::unique_ptr<Kernel> map_pairs(const KernelShape& shape, Function f) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape);
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for_vectors<kVector<T>>(count), kThreads, map_element_pairs<T, Function>, f, count,
             call.operand<T>(0), call.operand<T>(1), call.result<T>(0));
    });
  });
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

constexpr float kGeluSlope = 1.59576912f;  // 2 sqrt(2/pi)
constexpr float kGeluCube = 1.59576912f * 0.044715f;

// 0.5 (1 + tanh(u)) = sigmoid(2u), which keeps its relative precision where tanh is near -1.
__device__ inline float gelu_gate(float x) { return sigmoid(x * (kGeluSlope + kGeluCube * x * x)); }

struct Gelu {
  __device__ float operator()(float x) const { return x * gelu_gate(x); }
};

struct GeluGrad {
  __device__ float operator()(float dy, float x) const {
    const float gate = gelu_gate(x);
    return dy * (gate + x * gate * (1.0f - gate) * (kGeluSlope + 3.0f * kGeluCube * x * x));
  }
};

struct BiasGelu {
  __device__ float operator()(float x, float bias) const { return Gelu{}(x + bias); }
};

/// Writes the gradient of x while it sums that of the bias.
template <class T>
struct BiasGeluGrad {
  static constexpr int kSums = 1, kColumns = kVector<T>;
  std::int64_t width;
  const T *dy, *x, *bias;
  T* dx;

  __device__ bool rows_are_vectors() const {
    return alpa::rows_are_vectors<kColumns>(width, dy, x, bias, dx);
  }
  template <int N>
  __device__ void add(std::int64_t row, std::int64_t column, Floats<N>* sums) const {
    const std::int64_t at = row * width + column;
    const auto gradient = each([](float d, float value, float b) { return GeluGrad{}(d, value + b); },
                               load<N>(dy + at), load<N>(x + at), load<N>(bias + column));
    store(dx + at, gradient);
    sums[0] = each(Sum{}, sums[0], gradient);
  }
};

struct Silu {
  __device__ float operator()(float x) const { return x * sigmoid(x); }
};

struct SiluGrad {
  __device__ float operator()(float dy, float x) const {
    const float gate = sigmoid(x);
    return dy * gate * (1.0f + x * (1.0f - gate));
  }
};

struct Sigmoid {
  __device__ float operator()(float x) const { return sigmoid(x); }
};

struct SigmoidGrad {
  __device__ float operator()(float dy, float y) const { return dy * (y * (1.0f - y)); }
};

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

struct TanhGrad {
  __device__ float operator()(float dy, float y) const { return dy * (1.0f - y * y); }
};

struct Relu {
  __device__ float operator()(float x) const { return x > 0.0f ? x : 0.0f; }
};

struct AddRelu {
  __device__ float operator()(float x, float y) const { return Relu{}(x + y); }
};

struct ReluGrad {
  __device__ float operator()(float dy, float y) const { return y > 0.0f ? dy : 0.0f; }
};

struct Times {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};

struct Multiply {
  __device__ float operator()(float x, float y) const { return x * y; }
};

template <class T>
struct Element {
  static constexpr int kSums = 1, kColumns = kVector<T>;
  const T* x;
  std::int64_t width;

  __device__ bool rows_are_vectors() const { return alpa::rows_are_vectors<kColumns>(width, x); }
  template <int N>
  __device__ void add(std::int64_t row, std::int64_t column, Floats<N>* sums) const {
    sums[0] = each(Sum{}, sums[0], load<N>(x + row * width + column));
  }
};

}  // namespace

std::unique_ptr<Kernel> add_cuda(Device&, const KernelShape& shape) { return map_pairs(shape, Sum{}); }
std::unique_ptr<Kernel> add_relu_cuda(Device&, const KernelShape& shape) {
  return map_pairs(shape, AddRelu{});
}
std::unique_ptr<Kernel> mul_cuda(Device&, const KernelShape& shape) { return map_pairs(shape, Multiply{}); }
std::unique_ptr<Kernel> scale_cuda(Device&, const KernelShape& shape) {
  return map(shape, Times{static_cast<float>(shape.attributes.number("factor"))});
}
std::unique_ptr<Kernel> gelu_cuda(Device&, const KernelShape& shape) { return map(shape, Gelu{}); }
std::unique_ptr<Kernel> gelu_grad_cuda(Device&, const KernelShape& shape) {
  return map_pairs(shape, GeluGrad{});
}
std::unique_ptr<Kernel> silu_cuda(Device&, const KernelShape& shape) { return map(shape, Silu{}); }
std::unique_ptr<Kernel> silu_grad_cuda(Device&, const KernelShape& shape) {
  return map_pairs(shape, SiluGrad{});
}
std::unique_ptr<Kernel> sigmoid_cuda(Device&, const KernelShape& shape) { return map(shape, Sigmoid{}); }
std::unique_ptr<Kernel> sigmoid_grad_cuda(Device&, const KernelShape& shape) {
  return map_pairs(shape, SigmoidGrad{});
}
std::unique_ptr<Kernel> tanh_cuda(Device&, const KernelShape& shape) { return map(shape, Tanh{}); }
std::unique_ptr<Kernel> tanh_grad_cuda(Device&, const KernelShape& shape) { return map_pairs(shape, TanhGrad{}); }
std::unique_ptr<Kernel> relu_cuda(Device&, const KernelShape& shape) { return map(shape, Relu{}); }
std::unique_ptr<Kernel> relu_grad_cuda(Device&, const KernelShape& shape) {
  return map_pairs(shape, ReluGrad{});
}

namespace {

template <class Function>
std::unique_ptr<Kernel> with_bias(const KernelShape& shape, Function f) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const std::int64_t count = element_count(shape.operands[0].shape),
                     width = element_count(shape.operands[1].shape);
  return for_float_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
      launch(stream, grid_for_vectors<kVector<T>>(count), kThreads, map_with_bias<T, Function>, f, count,
             width, call.operand<T>(0), call.operand<T>(1), call.result<T>(0));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> bias_add_cuda(Device&, const KernelShape& shape) { return with_bias(shape, Sum{}); }
std::unique_ptr<Kernel> bias_gelu_cuda(Device&, const KernelShape& shape) {
  return with_bias(shape, BiasGelu{});
}

std::unique_ptr<Kernel> bias_gelu_grad_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ttt->tt")) return nullptr;
  const std::int64_t width = element_count(shape.operands[2].shape);
  const std::int64_t rows = element_count(shape.operands[0].shape) / width;
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel(
        [=, sums = DeviceColumnSums(rows, width)](const KernelCall& call, cudaStream_t stream) {
          sums.run(stream,
                   BiasGeluGrad<T>{width, call.operand<T>(0), call.operand<T>(1), call.operand<T>(2),
                                   call.result<T>(0)},
                   false, call.workspace, call.result<T>(1));
        });
  });
}

std::unique_ptr<Kernel> reduce_leading_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "t->a")) return nullptr;
  const std::int64_t width = element_count(shape.results[0].shape);
  const std::int64_t rows = element_count(shape.operands[0].shape) / width;
  const bool wide = shape.results[0].dtype == DType::f32;
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel(
        [=, sums = DeviceColumnSums(rows, width)](const KernelCall& call, cudaStream_t stream) {
          const Element<T> element{call.operand<T>(0), width};
          if (wide)
            sums.run(stream, element, call.accumulate, call.workspace, call.result<float>(0));
          else
            sums.run(stream, element, call.accumulate, call.workspace, call.result<T>(0));
        });
  });
}

}  // namespace alpa::ops
