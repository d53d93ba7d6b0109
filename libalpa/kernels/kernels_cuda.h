#pragma once
#include <memory>

#include "libalpa/kernels/kernel.h"

namespace alpa {

namespace ops {
// One factory per operator: prepares its kernel for a CUDA device, or gives null where it has none for these
// types.
#define ALPA_OP(name) std::unique_ptr<Kernel> name##_cuda(Device&, const KernelShape&);
#include "libalpa/ops/ops.def"
#undef ALPA_OP
}  // namespace ops

/// Kernels on a CUDA device. Equal shapes give equal bits on devices of one model. Throws as make_kernel, and
/// where this build has no CUDA backend.
std::unique_ptr<Kernel> make_cuda_kernel(Device&, const OpDef&, const KernelShape&);

/// As copy_box, on a CUDA device.
void copy_box_cuda(Stream&, const void* from, const Box& from_box, void* to, const Box& to_box,
                   const Shape& extent, DType);

}  // namespace alpa
