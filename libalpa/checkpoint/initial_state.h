#pragma once
#include <cstdint>

#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/graph.h"

namespace alpa {

/// Writes the initial value of one tile of a state to `tile_values`, host memory for it in row-major order
/// (f32, bf16 or f16, as the state's value).
///
/// Each element is drawn by Philox at (seed, name of the state, index in the whole tensor), so a value does
/// not depend on how the tensor is cut. A state that follows a parameter takes the parameter's draw: f32
/// master weights hold the draw itself, a bf16 or f16 parameter its rounding. Padding is 0.
void fill_initial_state(const Graph&, const State&, const Shape& tile_origin, const Shape& tile_shape,
                        std::int64_t seed, void* tile_values);

}  // namespace alpa
