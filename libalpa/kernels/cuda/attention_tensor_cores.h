#pragma once
#include <memory>

#include "libalpa/kernels/kernel.h"

namespace alpa {

/// Whether attention of these types runs on tensor cores: that of 16 bits, in builds for compute
/// capability 8.0 and newer alone.
bool runs_on_tensor_cores(const KernelShape&);

/// attention and attention_grad of 16-bit types. Scores, their maxima and all sums are in f32; weights and
/// their gradients are rounded to the type where they are multiplied again (FlashAttention-2, 2023). Null for
/// heads that are too wide.
std::unique_ptr<Kernel> attention_on_tensor_cores(const KernelShape&);
std::unique_ptr<Kernel> attention_grad_on_tensor_cores(const KernelShape&);

}  // namespace alpa
