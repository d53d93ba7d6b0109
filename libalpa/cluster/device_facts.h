#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/device_kind.h"
#include "libalpa/base/tensor_type.h"

namespace alpa {

// What is known of a device by its words alone: a cluster file's, or a device's own description.

/// Memory of each GPU that no plan gets, in bytes, as other things take it when free memory has been looked
/// at: modules of CUDA and cuBLASLt, and the communicators that NCCL makes for the plan. 0 on CPUs.
std::int64_t reserved_bytes(DeviceKind);

/// The peak in the data sheet of a GPU, in FLOP/s: dense, 16-bit types in matrix units, f32 outside of them.
/// What shares of a peak are published as. It is not attained: plans reckon with Cluster::flops_per_s.
/// nullopt for CPUs, and for GPUs that are not known here.
std::optional<double> data_sheet_flops_per_s(const std::string& device, DType);

/// A GPU that can be asked for by a word, with what plans reckon with: what large matrix products and
/// streaming kernels attain, and the memory left to a program. The shipped cluster files say the same.
struct DeviceFigures {
  const char* word;
  const char* device;
  double memory_gib;
  double f32_tflops, bf16_tflops, f16_tflops;  ///< 0: it does not compute in it
  double memory_gb_per_s, launch_us;
  double host_gb_per_s;  ///< each way, of a device in a node of eight that all move both ways
};

/// nullptr for a word that is none of device_words().
const DeviceFigures* device_figures(const std::string& word);
std::vector<std::string> device_words();

}  // namespace alpa
