#pragma once
#include <cstdint>

#include "libalpa/graph/op.h"

namespace alpa {

/// Scratch memory of the CPU kernels of a convolution and of its gradients, in bytes: where its pieces begin.
/// It does for one or two threads. What more of them need to sum gradients of filters, and other orders of
/// filters than those known here, kernels hold themselves.
struct ConvolutionScratch {
  std::int64_t filters = 0;       ///< in the order that suits the processor, channels in blocks of 16
  std::int64_t partial = 0;       ///< gradient of the filters: what a second thread sums
  std::int64_t operands[2] = {};  ///< bf16: as f32, where the processor has no fast way for them
  std::int64_t result = 0;        ///< likewise; gradient of the filters: what is added
  std::int64_t end = 0;

  /// Where a product of matrices is faster than a convolution: of how many rows of y, those of all images
  /// counted as one, the windows are copied to a matrix at a time, which is then all there is. 0: elsewhere.
  std::int64_t unfolded_rows = 0;

  std::int64_t filter_bytes() const { return partial - filters; }
  std::int64_t partial_bytes() const { return operands[0] - partial; }
};

enum class ConvolutionKind {
  forward,      ///< x, weight -> y
  grad_input,   ///< dy, weight -> dx
  grad_weight,  ///< x, dy -> dweight
};

/// Whether each place of y is the product of the same place of x with the filters as a matrix, `weight` being
/// [p q c f]: kernels then do without this scratch.
bool is_matrix_product(const Shape& weight, const Attributes&);

/// `call` is one of a conv2d, a conv2d_grad_input or a conv2d_grad_weight.
ConvolutionScratch convolution_scratch(ConvolutionKind, const OpCall& call);

}  // namespace alpa
