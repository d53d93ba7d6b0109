#pragma once
#include <cstdint>

#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/graph.h"

namespace alpa {

/// `count` elements of a tile of a state from the element `first` on, in row-major order of the tile.
struct TileStretch {
  Shape origin, shape;  ///< of the tile, in the whole tensor
  std::int64_t first = 0, count = 0;
};

/// Writes the initial values of a stretch to host memory for them (f32, bf16 or f16, as the state's value).
///
/// Each element is drawn by Philox at (seed, name of the state, index in the whole tensor), so a value does
/// not depend on how the tensor is cut. A state that follows a parameter takes the parameter's draw: f32
/// master weights hold the draw itself, a bf16 or f16 parameter its rounding. Padding is 0.
void fill_initial_state(const Graph&, const State&, const TileStretch&, std::int64_t seed, void* values);

}  // namespace alpa
