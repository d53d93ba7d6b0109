#pragma once
#include <cstddef>
#include <memory>

#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/attributes.h"
#include "libalpa/ops/convolution_scratch.h"

namespace alpa {

/// The tensors of a convolution, as operator conv2d has them, with its settings.
struct ConvolutionExtents {
  Shape x, weight, y;
  Attributes attributes;
};

/// A convolution prepared by oneDNN.
class ConvolutionPrimitive {
 public:
  virtual ~ConvolutionPrimitive() = default;
  virtual DType operand_type() const = 0;
  virtual DType result_type() const = 0;

  /// `workspace` has the first pieces of ConvolutionScratch.
  virtual void run(const void* first, const void* second, void* result, std::byte* workspace) = 0;
};

/// For operands of that type, or of f32 where the processor has no fast way for bf16.
std::unique_ptr<ConvolutionPrimitive> make_convolution_primitive(ConvolutionKind, const ConvolutionExtents&,
                                                                 DType, const ConvolutionScratch&);

}  // namespace alpa
