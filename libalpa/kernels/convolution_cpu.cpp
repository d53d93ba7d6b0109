#include <algorithm>
#include <vector>

#include "libalpa/kernels/convolution_primitive_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/kernels/host_loops.h"
#include "libalpa/kernels/kernels_cpu.h"
#include "libalpa/ops/window.h"

namespace alpa::ops {
namespace {

template <class T>
void widen(const T* from, std::vector<float>& to) {
  for_ranges(static_cast<std::int64_t>(to.size()), kElementGrain,
             [from, data = to.data()](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) data[i] = to_float(from[i]);
             });
}

template <class T>
void store(const std::vector<float>& from, T* to, bool add) {
  for_ranges(static_cast<std::int64_t>(from.size()), kElementGrain,
             [data = from.data(), to, add](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i)
                 to[i] = from_float<T>(data[i] + (add ? to_float(to[i]) : 0.0f));
             });
}

std::vector<float> floats_for(const TensorType& type, bool wanted) {
  return std::vector<float>(wanted ? static_cast<std::size_t>(element_count(type.shape)) : 0);
}

/// A convolution by oneDNN, with operands and result converted where its types are others.
template <class T, class Result>
class Convolution {
 public:
  Convolution(const KernelShape& shape, std::unique_ptr<ConvolutionPrimitive> primitive, bool accumulates)
      : primitive_(std::move(primitive)),
        result_(floats_for(shape.results[0], converts_result(accumulates))) {
    const bool convert = primitive_->operand_type() != shape.operands[0].dtype;
    for (const std::size_t i : {0, 1}) operands_[i] = floats_for(shape.operands[i], convert);
  }

  void operator()(const KernelCall& call) {
    const bool direct = result_.empty() || (std::is_same_v<Result, float> && !call.accumulate);
    primitive_->run(operand(call, 0), operand(call, 1), direct ? call.results[0].data : result_.data());
    if (!direct) store(result_, call.result<Result>(0), call.accumulate);
  }

 private:
  bool converts_result(bool accumulates) const {
    return accumulates || (primitive_->result_type() == DType::f32 && !std::is_same_v<Result, float>);
  }

  const void* operand(const KernelCall& call, std::size_t i) {
    if (operands_[i].empty()) return call.operands[i].data;
    widen(call.operand<T>(i), operands_[i]);
    return operands_[i].data();
  }

  std::unique_ptr<ConvolutionPrimitive> primitive_;
  std::array<std::vector<float>, 2> operands_;  ///< as f32; empty where they are taken as they are
  std::vector<float> result_;                   ///< before it is converted or added; empty likewise
};

/// Whether each place of y is the product of the same place of x with the filters as a matrix.
bool is_matrix_product(const TensorType& x, const TensorType& weight, const Attributes& attributes) {
  return x.shape[3] == weight.shape[2] &&
         std::ranges::all_of(windows_of(attributes, weight.shape[0], weight.shape[1]),
                             [](const Window& window) {
                               return window.size == 1 && window.stride == 1 && window.padding == 0;
                             });
}

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
                                    const TensorType& weight, const TensorType& y, bool accumulates) {
  if (is_matrix_product(x, weight, shape.attributes)) return matrix_product(kind, shape);
  auto primitive = make_convolution_primitive(kind, {x.shape, weight.shape, y.shape, shape.attributes},
                                              shape.operands[0].dtype);
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_type(shape.results[0].dtype, [&](auto result_zero) {
      return host_kernel(Convolution<T, decltype(result_zero)>(shape, std::move(primitive), accumulates));
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> conv2d_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  return convolution(ConvolutionKind::forward, shape, shape.operands[0], shape.operands[1], shape.results[0],
                     false);
}

std::unique_ptr<Kernel> conv2d_grad_input_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  return convolution(ConvolutionKind::grad_input, shape, shape.results[0], shape.operands[1],
                     shape.operands[0], false);
}

std::unique_ptr<Kernel> conv2d_grad_weight_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->a")) return nullptr;
  return convolution(ConvolutionKind::grad_weight, shape, shape.operands[0], shape.results[0],
                     shape.operands[1], true);
}

}  // namespace alpa::ops
