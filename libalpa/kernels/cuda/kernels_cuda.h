#pragma once
#include <memory>

#include "libalpa/kernels/kernel.h"

namespace alpa {

namespace ops {
// One factory per operator: prepares its kernel for a CUDA device, or gives null where it has none for these
// types.
#define ALPA_CPU_OP(name)
#define ALPA_OP(name) std::unique_ptr<Kernel> name##_cuda(Device&, const KernelShape&);
#include "libalpa/ops/ops.def"
#undef ALPA_OP
}  // namespace ops

/// Whether this build has CUDA kernels of that operator.
bool has_cuda_kernel(const OpDef&);

/// Kernels on a CUDA device. Equal shapes give equal bits on devices of one model, where tensors begin at
/// multiples of 16 bytes. Throws as make_kernel, and where this build has no CUDA backend.
std::unique_ptr<Kernel> make_cuda_kernel(Device&, const OpDef&, const KernelShape&);

/// As make_box_copy, on a CUDA device.
std::unique_ptr<Kernel> make_box_copy_cuda(const Box& from, const Box& to, const Shape& extent,
                                           DType from_type, DType to_type);

}  // namespace alpa
