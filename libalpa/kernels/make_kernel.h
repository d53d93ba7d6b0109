#pragma once
#include "libalpa/kernels/kernel.h"

namespace alpa {

/// Whether devices of this kind have kernels of `op`, for whatever types.
bool has_kernel(DeviceKind, const OpDef&);

/// Prepares `op`. Where OpDef::accumulates holds, a result of type f32 is allowed beside operands of bf16 (a
/// gradient summed in f32). Throws Error(run_time) naming operator and device where the device has no kernel
/// for these types.
std::unique_ptr<Kernel> make_kernel(Device&, const OpDef&, const KernelShape&);

/// Prepares the copy of a box of `extent` elements from one dense tensor, its operand, into another, its
/// result (slice, concatenate, pack), in that of the types of the result: the same one, or f32 for bf16 or
/// bf16 for f32, which is rounded to nearest.
std::unique_ptr<Kernel> make_box_copy(Device&, const Box& from, const Box& to, const Shape& extent,
                                      DType from_type, DType to_type);

}  // namespace alpa
