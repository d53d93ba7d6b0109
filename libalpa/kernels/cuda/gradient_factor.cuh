#pragma once
#include <cuda_runtime.h>

namespace alpa {

/// As gradient_factor of CPUs.
__device__ inline float gradient_factor(double clip, float square_norm, float inverse_scale) {
  const double norm = sqrt(static_cast<double>(square_norm)) * static_cast<double>(inverse_scale);
  return clip > 0 && norm > clip ? static_cast<float>(clip / norm) * inverse_scale : inverse_scale;
}

}  // namespace alpa
