#pragma once
#include <cstdint>

#include "tests/support/tensor_values.h"

namespace alpa {

/// Graphs drawn at random, as the structure i32 [b v k+1] of `rounds` has them (ops/vertex.h), in groups of
/// so many samples: some rows are left over, rounds are of many sizes, vertices have from none to k children
/// of any earlier rounds, and some of these several parents.
Values graph_structure(const Shape&, std::int64_t group, std::uint64_t seed);

}  // namespace alpa
