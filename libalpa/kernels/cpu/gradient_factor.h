#pragma once
#include <cmath>

namespace alpa {

/// What an update multiplies gradients of this squared norm by: 1 / loss scale, and what brings them within
/// `clip`; 0 does not clip.
inline float gradient_factor(double clip, float square_norm, float inverse_scale) {
  const double norm = std::sqrt(static_cast<double>(square_norm)) * static_cast<double>(inverse_scale);
  return clip > 0 && norm > clip ? static_cast<float>(clip / norm) * inverse_scale : inverse_scale;
}

/// Whether an update by gradients of that norm is another than one by a norm of 0: it clips them, or leaves
/// all as it is. GPUs work that out likewise (cuda/gradient_factor.cuh), to the bit.
inline bool norm_binds(double clip, float square_norm, float inverse_scale) {
  return !std::isfinite(square_norm) ||
         gradient_factor(clip, square_norm, inverse_scale) != gradient_factor(clip, 0, inverse_scale);
}

}  // namespace alpa
