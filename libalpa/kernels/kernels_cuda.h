#pragma once
#include <memory>

#include "libalpa/kernels/kernel.h"

namespace alpa {

/// Kernels on a CUDA device. Throws as make_kernel, and where this build has no CUDA backend.
std::unique_ptr<Kernel> make_cuda_kernel(Device&, const OpDef&, const KernelShape&);

/// As copy_box, on a CUDA device.
void copy_box_cuda(Stream&, const void* from, const Box& from_box, void* to, const Box& to_box,
                   const Shape& extent, DType);

}  // namespace alpa
