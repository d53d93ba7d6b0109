#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/attributes.h"

namespace alpa {

/// The structure i32 [b v k+1] of a node that runs rounds (ops/vertex.h) to time it on: each group has the
/// rounds of typical data (typical_rounds_of), and each vertex one parent, but for those of the last round.
std::vector<std::int32_t> structure_of_rounds(const Shape&, const Attributes&);

}  // namespace alpa
