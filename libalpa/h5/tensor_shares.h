#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {

/// A region of a tensor that a rank holds.
struct HeldRegion {
  int rank;
  int index;  ///< among those of its rank
  TensorRegion region;
};

/// A tensor and who holds what of it.
struct HeldTensor {
  TensorType type;
  std::vector<HeldRegion> held;
};

/// The bytes of a file of these tensors at most: their chunks, in whole pages of 4 KiB, and for what the file
/// says of itself 8 KiB for each tensor, 64 bytes for each chunk, and 256 KiB.
std::int64_t most_file_bytes(std::span<const TensorType> tensors);

/// The bytes that each of `ranks` ranks writes of a file of these tensors: whole chunks (at most 4 MiB), so
/// somewhat more than what it holds. A chunk is written by a rank that holds most of it; of several such by
/// the one with the least to write so far, the largest chunks first. Depends on its arguments alone.
std::vector<std::int64_t> tensor_shares(std::span<const HeldTensor> tensors, int ranks);

}  // namespace alpa
