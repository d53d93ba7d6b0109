#pragma once
#include <memory>

#include "libalpa/base/tensor_type.h"
#include "libalpa/kernels/contraction.h"
#include "libalpa/kernels/cpu/bfloat16_product.h"

namespace alpa {

/// By the processor's own instructions where multiplies_bfloat16(), else in f32.
std::unique_ptr<Bfloat16Product> make_bfloat16_product(const MatrixProduct&, DType result);

}  // namespace alpa
