#pragma once
// Internal to this module.
#include <memory>

#include "libalpa/base/tensor_type.h"
#include "libalpa/kernels/contraction.h"
#include "libalpa/kernels/cpu/bfloat16_product.h"

namespace alpa {

/// A product of bf16 matrices by that of f32, tile by tile: each thread widens what a tile of the result
/// takes. Products of two bf16 numbers are exact in f32, so it differs from instructions for bf16 by the
/// order of sums alone.
std::unique_ptr<Bfloat16Product> make_widened_product(const MatrixProduct&, DType result);

}  // namespace alpa
