#pragma once
#include <cmath>

namespace alpa {

/// What an update multiplies gradients of this squared norm by: 1 / loss scale, and what brings them within
/// `clip`; 0 does not clip.
inline float gradient_factor(double clip, float square_norm, float inverse_scale) {
  const double norm = std::sqrt(static_cast<double>(square_norm)) * static_cast<double>(inverse_scale);
  return clip > 0 && norm > clip ? static_cast<float>(clip / norm) * inverse_scale : inverse_scale;
}

}  // namespace alpa
