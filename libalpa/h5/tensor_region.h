#pragma once
// Internal to this module.
#include <string>
#include <vector>

#include "libalpa/h5/handle.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {

/// "" when `region` is a box inside a tensor of this shape; otherwise what is wrong.
std::string region_fault(const TensorRegion& region, const Shape& shape);

/// Cuts a non-empty region into boxes of at most `most_bytes` (one row of the innermost dimension may be
/// more) that lie one after another in the region's row-major order.
std::vector<TensorRegion> pieces_of(const TensorRegion& region, std::int64_t element_bytes,
                                    std::int64_t most_bytes);

/// The dataset's extent for a tensor: a scalar is stored as one element, since checksums need chunks, and
/// carries the attribute rank = 0.
Shape stored_extent(const Shape& shape);

/// Selects `region` of a tensor's dataset.
H5Space selection(const TensorRegion& region, const Shape& shape);

}  // namespace alpa
