#include <algorithm>
#include <array>
#include <cmath>

#include "libalpa/graph/update_scalars.h"
#include "libalpa/kernels/cpu/gradient_factor.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cuda/column_sums.h"
#include "libalpa/kernels/double_sum.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/adafactor.h"

namespace alpa::ops {
namespace {

FactoredExtents extents_of(const TensorType& tensor, const Attributes& attributes) {
  return {tensor.shape, Factoring::of(attributes)};
}

/// sums[i] += x[i]^2; the sum of these squares.
template <class T>
float take_squares(const T* x, std::int64_t count, float* sums) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = to_float(x[i]), square = value * value;
    sums[i] += square;
    sum += square;
  }
  return sum;
}

/// Of one row: adds the squares to `columns`, writes the sums over columns to `row`.
template <class T>
void add_squares_of_row(const FactoredExtents& e, const T* x, float* row, float* columns) {
  for (std::int64_t b = 0; b < e.middle; ++b) {
    const std::int64_t first = b * e.columns * e.inner;
    if (e.inner == 1) {
      row[b] = take_squares(x + first, e.columns, columns + first);
      continue;
    }
    float* const sums = row + b * e.inner;
    std::fill_n(sums, e.inner, 0.0f);
    for (std::int64_t n = 0; n < e.columns; ++n) {
      const std::int64_t at = first + n * e.inner;
#pragma omp simd
      for (std::int64_t c = 0; c < e.inner; ++c) {
        const float value = to_float(x[at + c]), square = value * value;
        columns[at + c] += square;
        sums[c] += square;
      }
    }
  }
}

/// What mean squares keep of themselves at an update, and what they take of the new ones.
struct AdafactorDecay {
  double fresh, kept;

  explicit AdafactorDecay(const UpdateScalars& scalars)
      : fresh(std::pow(std::max(1.0, static_cast<double>(scalars.updates)), -kAdafactorDecayExponent)),
        kept(1 - fresh) {}

  float of(float average, double square) const {
    return static_cast<float>(kept * static_cast<double>(average) + fresh * (square + kAdafactorLeastSquare));
  }
};

struct Factors {
  FactoredExtents e;  ///< of the parameter's tile, rows and columns whole
  double clip;

  /// Of the matrix that begins at row `row`, at `column` of the columns.
  void run(float factor, const AdafactorDecay& decay, std::int64_t row, std::int64_t column,
           const KernelCall& call) const {
    const std::int64_t row_stride = e.middle * e.inner;
    const double square = static_cast<double>(factor) * static_cast<double>(factor);
    float *r = call.result<float>(0) + row, *c = call.result<float>(1) + column;
    double mean = 0;
    for (std::int64_t m = 0; m < e.rows; ++m) {
      const double sum = static_cast<double>(call.operand<float>(2)[row + m * row_stride]);
      float& average = r[m * row_stride];
      average = decay.of(average, sum * square / static_cast<double>(e.columns));
      mean += static_cast<double>(average) / static_cast<double>(e.rows);
    }
    for (std::int64_t m = 0; m < e.rows; ++m)
      call.result<float>(2)[row + m * row_stride] = static_cast<float>(
          static_cast<double>(factor) * std::sqrt(mean / static_cast<double>(r[m * row_stride])));
    for (std::int64_t n = 0; n < e.columns; ++n) {
      const double sum = static_cast<double>(call.operand<float>(3)[column + n * e.inner]);
      float& average = c[n * e.inner];
      average = decay.of(average, sum * square / static_cast<double>(e.rows));
      call.result<float>(3)[column + n * e.inner] =
          static_cast<float>(1 / std::sqrt(static_cast<double>(average)));
    }
  }
};

/// U, before it is clipped, of a range of a tensor's elements.
struct AdafactorSteps {
  FactoredExtents e;
  const float *row_scale, *column_scale;  ///< the latter null: one scale for each element

  template <class G>
  void take(const G* gradient, std::int64_t begin, std::int64_t end, float* u) const {
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t stop = std::min(end, end_of_stretch(at));
      take_stretch(gradient + at, at, stop - at, u + (at - begin));
      at = stop;
    }
  }

 private:
  /// Elements up to there have one row scale (where e.inner is 1), or scales that lie side by side.
  std::int64_t end_of_stretch(std::int64_t at) const {
    if (!column_scale) return element_end();
    const std::int64_t length = e.inner == 1 ? e.columns : e.inner;
    return (at / length + 1) * length;
  }
  std::int64_t element_end() const { return e.outer * e.rows * e.width(); }

  template <class G>
  void take_stretch(const G* gradient, std::int64_t at, std::int64_t count, float* u) const {
    if (!column_scale) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) u[i] = to_float(gradient[i]) * row_scale[at + i];
      return;
    }
    const std::int64_t row = at / e.width(), below = at % e.width();
    const float* columns = column_scale + row / e.rows * e.width() + below;
    const std::int64_t block = row * e.middle + below / (e.columns * e.inner);
    if (e.inner == 1) {
      const float scale = row_scale[block];
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) u[i] = to_float(gradient[i]) * scale * columns[i];
      return;
    }
    const float* rows = row_scale + block * e.inner + below % e.inner;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) u[i] = to_float(gradient[i]) * rows[i] * columns[i];
  }
};

constexpr std::int64_t kStepsAtOnce = 512;

/// Sums of U^2 and of the squares of the weights, in an order that depends on the extents alone.
template <class W, class G>
void sum_step_squares(std::int64_t count, const AdafactorSteps& steps, const W* w, const G* gradient,
                      float* result) {
  constexpr std::int64_t most_pieces = 64;
  const std::int64_t pieces = std::min(count / kElementGrain + 1, most_pieces);
  std::array<double, most_pieces> of_steps{}, of_weights{};
  for_pieces(count, pieces, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    std::array<float, kStepsAtOnce> u;
    for (std::int64_t at = begin; at < end; at += kStepsAtOnce) {
      const std::int64_t stop = std::min(end, at + kStepsAtOnce);
      steps.take(gradient, at, stop, u.data());
      of_steps[piece] += double_sum_of_range<Power::two>(u.data(), 0, stop - at);
      of_weights[piece] += double_sum_of_range<Power::two>(w, at, stop);
    }
  });
  double step_sum = 0, weight_sum = 0;
  for (std::int64_t p = 0; p < pieces; ++p) step_sum += of_steps[p], weight_sum += of_weights[p];
  result[0] = static_cast<float>(step_sum);
  result[1] = static_cast<float>(weight_sum);
}

struct Adafactor {
  double elements, weight_decay;

  explicit Adafactor(const Attributes& a)
      : elements(a.number("elements")), weight_decay(a.number("weight_decay", 0)) {}

  double rms(float squares) const { return std::sqrt(static_cast<double>(squares) / elements); }

  /// Updates w in place; rounds it to `working` unless that is null.
  template <class G>
  void run(std::int64_t count, const AdafactorSteps& steps, const G* gradient, const float* squares,
           const UpdateScalars& scalars, float* w, Bfloat16* working) const {
    const auto rate = static_cast<double>(scalars.learning_rate);
    const auto keep = static_cast<float>(1 - rate * weight_decay);
    const auto step = static_cast<float>(rate * std::max(kAdafactorLeastWeight, rms(squares[1])) /
                                         std::max(1.0, rms(squares[0]) / kAdafactorLargestStep));
    for_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
      std::array<float, kStepsAtOnce> u;
      for (std::int64_t at = begin; at < end; at += kStepsAtOnce) {
        const std::int64_t stop = std::min(end, at + kStepsAtOnce);
        steps.take(gradient, at, stop, u.data());
#pragma omp simd
        for (std::int64_t i = at; i < stop; ++i) w[i] = w[i] * keep - step * u[i - at];
        if (!working) continue;
#pragma omp simd
        for (std::int64_t i = at; i < stop; ++i) working[i] = to_bfloat16(w[i]);
      }
    });
  }
};

/// The scales that a call takes from operand `first` on.
AdafactorSteps steps_of(const FactoredExtents& extents, const KernelCall& call, std::size_t first) {
  const bool factored = call.operands.size() > first + 1;
  return {extents, call.operand<float>(first), factored ? call.operand<float>(first + 1) : nullptr};
}

/// `first`: what follows the weights, and the working weights where there are some.
std::unique_ptr<Kernel> adafactor_kernel(const KernelShape& shape, std::size_t first) {
  return for_type(shape.operands[first].dtype, [&](auto zero) {
    using G = decltype(zero);
    return host_kernel([=, count = element_count(shape.operands[0].shape),
                        extents = extents_of(shape.operands[0], shape.attributes),
                        adafactor = Adafactor(shape.attributes)](const KernelCall& call) {
      if (!std::isfinite(*call.operand<float>(first + 3))) return;
      adafactor.run(count, steps_of(extents, call, first + 4), call.operand<G>(first),
                    call.operand<float>(first + 1), *call.operand<UpdateScalars>(first + 2),
                    call.result<float>(0), first > 1 ? call.result<Bfloat16>(1) : nullptr);
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> adafactor_sums_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->ff")) return nullptr;
  const FactoredExtents e = extents_of(shape.operands[0], shape.attributes);
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, sums = ColumnSums(e.outer, e.rows, e.width())](const KernelCall& call) mutable {
      const T* x = call.operand<T>(0);
      float *rows = call.result<float>(0), *columns = call.result<float>(1);
      sums.gather([=](float* of_piece, std::int64_t, std::int64_t row) {
        add_squares_of_row(e, x + row * e.width(), rows + row * e.middle * e.inner, of_piece);
      });
      for (std::int64_t a = 0; a < e.outer; ++a) std::copy_n(sums.of(a), e.width(), columns + a * e.width());
    });
  });
}

std::unique_ptr<Kernel> adafactor_factors_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ffffff->ffff")) return nullptr;
  const FactoredExtents extents(shape.operands[0].shape, shape.operands[1].shape,
                                Factoring::of(shape.attributes));
  return host_kernel([factors = Factors{extents, shape.attributes.number("clip", 0)},
                      parts = element_count(shape.results[2].shape),
                      others = element_count(shape.results[3].shape)](const KernelCall& call) {
    const auto& [e, clip] = factors;
    const auto& scalars = *call.operand<UpdateScalars>(4);
    const float square_norm = *call.operand<float>(5);
    if (!std::isfinite(square_norm)) {
      std::fill_n(call.result<float>(2), parts, 0.0f);
      std::fill_n(call.result<float>(3), others, 0.0f);
      return;
    }
    const float factor = gradient_factor(clip, square_norm, scalars.per_loss_scale);
    for (std::int64_t a = 0; a < e.outer; ++a)
      for (std::int64_t b = 0; b < e.middle; ++b)
        for (std::int64_t c = 0; c < e.inner; ++c)
          factors.run(factor, AdafactorDecay(scalars), (a * e.rows * e.middle + b) * e.inner + c,
                      a * e.width() + b * e.columns * e.inner + c, call);
  });
}

std::unique_ptr<Kernel> adafactor_moment_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ftff->ff")) return nullptr;
  return for_type(shape.operands[1].dtype, [&](auto zero) {
    using G = decltype(zero);
    return host_kernel([count = element_count(shape.operands[0].shape),
                        clip = shape.attributes.number("clip", 0)](const KernelCall& call) {
      const auto& scalars = *call.operand<UpdateScalars>(2);
      const float square_norm = *call.operand<float>(3);
      float *v = call.result<float>(0), *scale = call.result<float>(1);
      if (!std::isfinite(square_norm)) {
        std::fill_n(scale, count, 0.0f);
        return;
      }
      const float factor = gradient_factor(clip, square_norm, scalars.per_loss_scale);
      const AdafactorDecay decay(scalars);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto g = static_cast<double>(to_float(call.operand<G>(1)[i]) * factor);
        v[i] = decay.of(v[i], g * g);
        scale[i] = static_cast<float>(static_cast<double>(factor) / std::sqrt(static_cast<double>(v[i])));
      }
    });
  });
}

std::unique_ptr<Kernel> adafactor_squares_cpu(const KernelShape& shape) {
  if (!types_match(shape, "taff->f") && !types_match(shape, "taf->f")) return nullptr;
  return for_type(shape.operands[0].dtype, [&](auto w_zero) {
    return for_type(shape.operands[1].dtype, [&](auto g_zero) {
      using W = decltype(w_zero);
      using G = decltype(g_zero);
      return host_kernel([count = element_count(shape.operands[0].shape),
                          extents = extents_of(shape.operands[0], shape.attributes)](const KernelCall& call) {
        sum_step_squares(count, steps_of(extents, call, 2), call.operand<W>(0), call.operand<G>(1),
                         call.result<float>(0));
      });
    });
  });
}

std::unique_ptr<Kernel> adafactor_cpu(const KernelShape& shape) {
  const bool matches = types_match(shape, "fffffff->f") || types_match(shape, "ffffff->f");
  return matches ? adafactor_kernel(shape, 1) : nullptr;
}

std::unique_ptr<Kernel> adafactor_master_cpu(const KernelShape& shape) {
  const bool matches = types_match(shape, "ftafffff->ft") || types_match(shape, "ftaffff->ft");
  return matches && shape.results[1].dtype == DType::bf16 ? adafactor_kernel(shape, 2) : nullptr;
}

}  // namespace alpa::ops
