#pragma once
#include "libalpa/device/device.h"
#include "tests/kernels/emulation/emulated_grid.h"

namespace alpa::emulation {

/// A CUDA device as far as kernels can see, whose memory is host memory and whose work runs, in that order,
/// when the host waits for it (emulated_stream.h). The order holds for all such devices of the process, from
/// the making of the last one on.
std::unique_ptr<Device> make_device(Order);

/// What such devices say is free, in bytes; 0: what the host has.
inline std::int64_t free_bytes = 0;

/// Handles of cuBLASLt that were ever made.
int product_libraries_made();

}  // namespace alpa::emulation
