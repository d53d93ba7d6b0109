#pragma once
#include <memory>

#include "libalpa/kernels/kernel.h"

namespace alpa {

namespace ops {
// One factory per operator: prepares its kernel for host memory, or gives null where it has none for these
// types.
#define ALPA_OP(name) std::unique_ptr<Kernel> name##_cpu(const KernelShape&);
#include "libalpa/ops/ops.def"
#undef ALPA_OP
}  // namespace ops

/// Kernels on host memory. They use as many threads as host_threads() says where they are made and run; equal
/// shapes and thread counts give equal bits. Throws as make_kernel.
std::unique_ptr<Kernel> make_cpu_kernel(const OpDef&, const KernelShape&);

/// As make_box_copy, on host memory.
std::unique_ptr<Kernel> make_box_copy_cpu(const Box& from, const Box& to, const Shape& extent,
                                          DType from_type, DType to_type);

}  // namespace alpa
