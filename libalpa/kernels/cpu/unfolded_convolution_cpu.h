#pragma once
#include <cstdint>
#include <memory>

#include "libalpa/kernels/cpu/convolution_primitive_cpu.h"
#include "libalpa/kernels/kernel.h"

namespace alpa {

/// A convolution in f32, or the gradient of its filters, as ConvolutionScratch has it unfolded: a product of
/// the filters, or of dy, with a matrix in which the window of each place of y is a row. That matrix is in
/// the workspace, for `rows_at_once` rows of y of all images.
std::unique_ptr<Kernel> unfolded_convolution(ConvolutionKind, const ConvolutionExtents&,
                                             std::int64_t rows_at_once);

}  // namespace alpa
