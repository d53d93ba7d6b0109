#include <cmath>

#include "libalpa/graph/update_scalars.h"
#include "libalpa/kernels/cuda/column_sums.cuh"
#include "libalpa/kernels/cuda/double_sums.cuh"
#include "libalpa/kernels/cuda/gradient_factor.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/ops/adafactor.h"

namespace alpa::ops {
namespace {

FactoredExtents extents_of(const TensorType& tensor, const Attributes& attributes) {
  return {tensor.shape, Factoring::of(attributes)};
}

template <class T>
struct SquareOfElement {
  static constexpr int kSums = 1, kColumns = kVector<T>;
  const T* x;
  std::int64_t width;

  __device__ bool rows_are_vectors() const { return alpa::rows_are_vectors<kColumns>(width, x); }
  template <int N>
  __device__ void add(std::int64_t row, std::int64_t column, Floats<N>* sums) const {
    sums[0] = each([](float sum, float value) { return sum + value * value; }, sums[0],
                   load<N>(x + row * width + column));
  }
};

/// A block for each row and each place of the dimensions between rows and columns.
template <class T>
__global__ void sum_row_squares(FactoredExtents e, const T* gradient, float* sums) {
  const T* x = gradient + std::int64_t{blockIdx.x} * e.columns * e.inner;
  if (e.inner == 1) {
    const float sum = block_sum<float>(e.columns, [=](std::int64_t n) {
      const float value = widened(x[n]);
      return value * value;
    });
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    return;
  }
  for_block(e.inner, [=](std::int64_t c) {
    float sum = 0;
    for (std::int64_t n = 0; n < e.columns; ++n) {
      const float value = widened(x[n * e.inner + c]);
      sum += value * value;
    }
    sums[blockIdx.x * e.inner + c] = sum;
  });
}

/// What mean squares keep of themselves at an update, and what they take of the new ones.
struct DeviceAdafactorDecay {
  float fresh, kept;

  __device__ explicit DeviceAdafactorDecay(const UpdateScalars& scalars)
      : fresh(static_cast<float>(
            pow(fmax(1.0, static_cast<double>(scalars.updates)), -kAdafactorDecayExponent))),
        kept(1.0f - fresh) {}

  __device__ float of(float average, float square) const {
    return kept * average + fresh * (square + static_cast<float>(kAdafactorLeastSquare));
  }
};

/// A block for each matrix of the parameter. Updates r and c in place, unless the norm is not finite.
__global__ void update_factors(FactoredExtents e, double clip, const float* row_sums,
                               const float* column_sums, const UpdateScalars* scalars,
                               const float* square_norm, float* r, float* c, float* row_scale,
                               float* column_scale) {
  const std::int64_t inner = blockIdx.x % e.inner, middle = blockIdx.x / e.inner % e.middle,
                     outer = blockIdx.x / e.inner / e.middle;
  const std::int64_t row_stride = e.middle * e.inner,
                     row = (outer * e.rows * e.middle + middle) * e.inner + inner,
                     column = (outer * e.middle + middle) * e.columns * e.inner + inner;
  const bool finite = isfinite(*square_norm);
  const float factor = finite ? gradient_factor(clip, *square_norm, scalars->per_loss_scale) : 0.0f;
  const DeviceAdafactorDecay decay(*scalars);
  if (finite) {
    for_block(e.rows, [=](std::int64_t m) {
      const std::int64_t at = row + m * row_stride;
      r[at] = decay.of(r[at], row_sums[at] * factor * factor / static_cast<float>(e.columns));
    });
    for_block(e.columns, [=](std::int64_t n) {
      const std::int64_t at = column + n * e.inner;
      c[at] = decay.of(c[at], column_sums[at] * factor * factor / static_cast<float>(e.rows));
    });
  }
  // Each thread reads what it has written itself.
  const float mean = block_sum<float>(e.rows, [=](std::int64_t m) { return r[row + m * row_stride]; }) /
                     static_cast<float>(e.rows);
  for_block(e.rows, [=](std::int64_t m) {
    const std::int64_t at = row + m * row_stride;
    row_scale[at] = finite ? factor * sqrtf(mean / r[at]) : 0.0f;
  });
  for_block(e.columns, [=](std::int64_t n) {
    const std::int64_t at = column + n * e.inner;
    column_scale[at] = finite ? 1.0f / sqrtf(c[at]) : 0.0f;
  });
}

/// Updates v in place, unless the norm is not finite.
template <class G>
__global__ void update_moment(double clip, std::int64_t count, const G* gradient,
                              const UpdateScalars* scalars, const float* square_norm, float* v,
                              float* scale) {
  const bool finite = isfinite(*square_norm);
  const float factor = finite ? gradient_factor(clip, *square_norm, scalars->per_loss_scale) : 0.0f;
  const DeviceAdafactorDecay decay(*scalars);
  for_elements(count, [=](std::int64_t i) {
    if (!finite) {
      scale[i] = 0.0f;
      return;
    }
    const float g = widened(gradient[i]) * factor;
    v[i] = decay.of(v[i], g * g);
    scale[i] = factor / sqrtf(v[i]);
  });
}

/// U, before it is clipped.
template <class G>
struct DeviceAdafactorSteps {
  FactoredExtents e;
  const G* gradient;
  const float *row_scale, *column_scale;  ///< the latter null: one scale for each element

  __device__ float operator()(std::int64_t i) const {
    const float g = widened(gradient[i]);
    if (!column_scale) return g * row_scale[i];
    const std::int64_t block = e.columns * e.inner, width = e.middle * block;
    const std::int64_t row = i / width, below = i % width;
    return g * row_scale[(row * e.middle + below / block) * e.inner + below % e.inner] *
           column_scale[row / e.rows * width + below];
  }
};

/// Each block's sums of U^2 and, `blocks` places further, of the squares of the weights.
template <class W, class G>
__global__ void sum_step_squares(DeviceAdafactorSteps<G> steps, std::int64_t count, const W* w,
                                 double* partial) {
  const std::int64_t begin = count * blockIdx.x / gridDim.x,
                     end = count * (blockIdx.x + std::int64_t{1}) / gridDim.x;
  const double of_steps = block_sum<double>(end - begin, [=](std::int64_t i) {
    const auto u = static_cast<double>(steps(begin + i));
    return u * u;
  });
  const double of_weights = block_sum<double>(end - begin, [=](std::int64_t i) {
    const auto x = static_cast<double>(widened(w[begin + i]));
    return x * x;
  });
  if (threadIdx.x > 0) return;
  partial[blockIdx.x] = of_steps;
  partial[gridDim.x + blockIdx.x] = of_weights;
}

struct DeviceAdafactor {
  double elements, weight_decay;

  explicit DeviceAdafactor(const Attributes& a)
      : elements(a.number("elements")), weight_decay(a.number("weight_decay", 0)) {}

  __device__ double rms(float squares) const { return sqrt(static_cast<double>(squares) / elements); }
};

/// Updates w in place, unless the norm is not finite; rounds w to `working` unless that is null.
template <class G, class Working>
__global__ void adafactor_update(DeviceAdafactor a, DeviceAdafactorSteps<G> steps, std::int64_t count,
                                 const float* squares, const UpdateScalars* scalars, const float* square_norm,
                                 float* w, Working* working) {
  if (!isfinite(*square_norm)) return;
  const auto rate = static_cast<double>(scalars->learning_rate);
  const auto keep = static_cast<float>(1 - rate * a.weight_decay);
  const auto step = static_cast<float>(rate * fmax(kAdafactorLeastWeight, a.rms(squares[1])) /
                                       fmax(1.0, a.rms(squares[0]) / kAdafactorLargestStep));
  for_elements(count, [=](std::int64_t i) {
    const float weight = w[i] * keep - step * steps(i);
    w[i] = weight;
    if (working) working[i] = narrowed<Working>(weight);
  });
}

/// The scales that a call takes from operand `first` on.
template <class G>
DeviceAdafactorSteps<G> steps_of(const FactoredExtents& extents, const KernelCall& call, const G* gradient,
                                 std::size_t first) {
  const bool factored = call.operands.size() > first + 1;
  return {extents, gradient, call.operand<float>(first), factored ? call.operand<float>(first + 1) : nullptr};
}

/// `first`: what follows the weights, and the working weights where there are some.
template <class Working>
std::unique_ptr<Kernel> adafactor_kernel(const KernelShape& shape, std::size_t first) {
  return for_float_type(shape.operands[first].dtype, [&](auto zero) {
    using G = decltype(zero);
    return cuda_kernel(
        [=, count = element_count(shape.operands[0].shape),
         extents = extents_of(shape.operands[0], shape.attributes),
         adafactor = DeviceAdafactor(shape.attributes)](const KernelCall& c, cudaStream_t stream) {
          launch(stream, grid_for(count), kThreads, adafactor_update<G, Working>, adafactor,
                 steps_of(extents, c, c.operand<G>(first), first + 4), count, c.operand<float>(first + 1),
                 c.operand<UpdateScalars>(first + 2), c.operand<float>(first + 3), c.result<float>(0),
                 first > 1 ? c.result<Working>(1) : nullptr);
        });
  });
}

}  // namespace

std::unique_ptr<Kernel> adafactor_sums_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "t->ff")) return nullptr;
  const FactoredExtents e = extents_of(shape.operands[0], shape.attributes);
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return cuda_kernel(
        [e, sums = DeviceColumnSums(e.rows, e.width())](const KernelCall& c, cudaStream_t stream) {
          const T* x = c.operand<T>(0);
          launch(stream, blocks_of(e.outer * e.rows * e.middle), kThreads, sum_row_squares<T>, e, x,
                 c.result<float>(0));
          for (std::int64_t a = 0; a < e.outer; ++a)
            sums.run(stream, SquareOfElement<T>{x + a * e.rows * e.width(), e.width()}, false, c.workspace,
                     c.result<float>(1) + a * e.width());
        });
  });
}

std::unique_ptr<Kernel> adafactor_factors_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ffffff->ffff")) return nullptr;
  return cuda_kernel(
      [e = FactoredExtents(shape.operands[0].shape, shape.operands[1].shape, Factoring::of(shape.attributes)),
       clip = shape.attributes.number("clip", 0)](const KernelCall& c, cudaStream_t stream) {
        launch(stream, blocks_of(e.outer * e.middle * e.inner), kThreads, update_factors, e, clip,
               c.operand<float>(2), c.operand<float>(3), c.operand<UpdateScalars>(4), c.operand<float>(5),
               c.result<float>(0), c.result<float>(1), c.result<float>(2), c.result<float>(3));
      });
}

std::unique_ptr<Kernel> adafactor_moment_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ftff->ff")) return nullptr;
  return for_float_type(shape.operands[1].dtype, [&](auto zero) {
    using G = decltype(zero);
    return cuda_kernel([count = element_count(shape.operands[0].shape),
                        clip = shape.attributes.number("clip", 0)](const KernelCall& c, cudaStream_t stream) {
      launch(stream, grid_for(count), kThreads, update_moment<G>, clip, count, c.operand<G>(1),
             c.operand<UpdateScalars>(2), c.operand<float>(3), c.result<float>(0), c.result<float>(1));
    });
  });
}

std::unique_ptr<Kernel> adafactor_squares_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "taff->f") && !types_match(shape, "taf->f")) return nullptr;
  return for_float_type(shape.operands[0].dtype, [&](auto w_zero) {
    return for_float_type(shape.operands[1].dtype, [&](auto g_zero) {
      using W = decltype(w_zero);
      using G = decltype(g_zero);
      return cuda_kernel([count = element_count(shape.operands[0].shape),
                          extents = extents_of(shape.operands[0], shape.attributes)](const KernelCall& c,
                                                                                     cudaStream_t stream) {
        const std::int64_t blocks = double_sum_stretches(count);
        auto* partial = static_cast<double*>(c.workspace);
        launch(stream, blocks_of(blocks), kThreads, sum_step_squares<W, G>,
               steps_of(extents, c, c.operand<G>(1), 2), count, c.operand<W>(0), partial);
        for (const int sum : {0, 1})
          launch(stream, blocks_of(1), kThreads, sum_partial_sums<float>, blocks, partial + sum * blocks, 1.0,
                 c.result<float>(0) + sum, false);
      });
    });
  });
}

std::unique_ptr<Kernel> adafactor_cuda(Device&, const KernelShape& shape) {
  const bool matches = types_match(shape, "fffffff->f") || types_match(shape, "ffffff->f");
  return matches ? adafactor_kernel<float>(shape, 1) : nullptr;
}

std::unique_ptr<Kernel> adafactor_master_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "ftafffff->ft") && !types_match(shape, "ftaffff->ft")) return nullptr;
  return for_float_type(shape.results[1].dtype,
                        [&](auto zero) { return adafactor_kernel<decltype(zero)>(shape, 2); });
}

}  // namespace alpa::ops
