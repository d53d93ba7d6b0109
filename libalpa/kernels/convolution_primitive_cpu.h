#pragma once
#include <memory>

#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/attributes.h"

namespace alpa {

enum class ConvolutionKind {
  forward,      ///< x, weight -> y
  grad_input,   ///< dy, weight -> dx
  grad_weight,  ///< x, dy -> dweight
};

/// The tensors of a convolution, as operator conv2d has them, with its settings.
struct ConvolutionExtents {
  Shape x, weight, y;
  Attributes attributes;
};

/// A convolution prepared by oneDNN. It holds the memory it works in: filters in the order that suits the
/// processor, and scratch.
class ConvolutionPrimitive {
 public:
  virtual ~ConvolutionPrimitive() = default;
  virtual DType operand_type() const = 0;
  virtual DType result_type() const = 0;
  virtual void run(const void* first, const void* second, void* result) = 0;
};

/// For operands of that type, or of f32 where the processor has no fast way for bf16.
std::unique_ptr<ConvolutionPrimitive> make_convolution_primitive(ConvolutionKind, const ConvolutionExtents&,
                                                                 DType);

}  // namespace alpa
