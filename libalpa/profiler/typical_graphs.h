#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// The structure i32 [b v k+1] of `rounds` (ops/vertex.h) to time it on, with all rows taken: groups of so
/// many samples that are chains of v vertices where a vertex has one child at most, else trees whose heights
/// are those of labelled sentences (half of the vertices are leaves, and the greatest height is over 20 where
/// there are many; facts of the Stanford sentiment treebank).
std::vector<std::int32_t> typical_graphs(const Shape&, std::int64_t group);

}  // namespace alpa
