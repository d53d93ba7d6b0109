#include <array>
#include <cstddef>

#include "libalpa/kernels/cpu/convolution_primitive_cpu.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/unfolded_convolution_cpu.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

template <class T>
void widen(const T* from, float* to, std::int64_t count) {
  for_ranges(count, kElementGrain, [from, to](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = to_float(from[i]);
  });
}

template <class T>
void store(const float* from, T* to, std::int64_t count, bool add) {
  for_ranges(count, kElementGrain, [from, to, add](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      to[i] = from_float<T>(from[i] + (add ? to_float(to[i]) : 0.0f));
  });
}

/// A convolution by oneDNN, with operands and result converted where its types are others.
template <class T, class Result>
class Convolution {
 public:
  Convolution(const KernelShape& shape, const ConvolutionScratch& scratch,
              std::unique_ptr<ConvolutionPrimitive> primitive)
      : scratch_(scratch),
        primitive_(std::move(primitive)),
        counts_{element_count(shape.operands[0].shape), element_count(shape.operands[1].shape)},
        result_count_(element_count(shape.results[0].shape)) {}

  void operator()(const KernelCall& call) {
    auto* const workspace = static_cast<std::byte*>(call.workspace);
    const bool direct =
        !call.accumulate && (primitive_->result_type() != DType::f32 || std::is_same_v<Result, float>);
    auto* const result = reinterpret_cast<float*>(workspace + scratch_.result);
    primitive_->run(operand(call, 0), operand(call, 1), direct ? call.results[0].data : result, workspace);
    if (!direct) store(result, call.result<Result>(0), result_count_, call.accumulate);
  }

 private:
  const void* operand(const KernelCall& call, std::size_t i) const {
    if (primitive_->operand_type() != DType::f32 || std::is_same_v<T, float>) return call.operands[i].data;
    auto* const floats =
        reinterpret_cast<float*>(static_cast<std::byte*>(call.workspace) + scratch_.operands[i]);
    widen(call.operand<T>(i), floats, counts_[i]);
    return floats;
  }

  ConvolutionScratch scratch_;
  std::unique_ptr<ConvolutionPrimitive> primitive_;
  std::array<std::int64_t, 2> counts_;
  std::int64_t result_count_;
};

/// Matrix products take filters as they lie; for convolutions oneDNN has them in another order.
std::unique_ptr<Kernel> matrix_product(ConvolutionKind kind, KernelShape shape) {
  const char* equation = kind == ConvolutionKind::forward      ? "n h w c, c f -> n h w f"
                         : kind == ConvolutionKind::grad_input ? "n h w f, c f -> n h w c"
                                                               : "n h w c, n h w f -> c f";
  Shape& filters = kind == ConvolutionKind::grad_weight ? shape.results[0].shape : shape.operands[1].shape;
  filters = {filters[2], filters[3]};
  shape.attributes = {{"equation", equation}};
  return einsum_cpu(shape);
}

/// The three tensors are those of the forward convolution, whatever the kind.
std::unique_ptr<Kernel> convolution(ConvolutionKind kind, const KernelShape& shape, const TensorType& x,
                                    const TensorType& weight, const TensorType& y) {
  if (is_matrix_product(weight.shape, shape.attributes)) return matrix_product(kind, shape);
  const ConvolutionScratch scratch = convolution_scratch(kind, {shape.operands, shape.attributes});
  const ConvolutionExtents extents{x.shape, weight.shape, y.shape, shape.attributes};
  if (scratch.unfolded_rows > 0) return unfolded_convolution(kind, extents, scratch.unfolded_rows);
  auto primitive = make_convolution_primitive(kind, extents, shape.operands[0].dtype, scratch);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_type(shape.results[0].dtype, [&](auto result_zero) {
      return host_kernel(Convolution<T, decltype(result_zero)>(shape, scratch, std::move(primitive)));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> conv2d_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  return convolution(ConvolutionKind::forward, shape, shape.operands[0], shape.operands[1], shape.results[0]);
}

std::unique_ptr<Kernel> conv2d_grad_input_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  return convolution(ConvolutionKind::grad_input, shape, shape.results[0], shape.operands[1],
                     shape.operands[0]);
}

std::unique_ptr<Kernel> conv2d_grad_weight_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->a")) return nullptr;
  return convolution(ConvolutionKind::grad_weight, shape, shape.operands[0], shape.results[0],
                     shape.operands[1]);
}

}  // namespace alpa::ops
