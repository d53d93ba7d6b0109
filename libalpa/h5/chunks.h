#pragma once
// Internal to this module: how tensors are cut into checksummed chunks, and chunks put together from what
// ranks hold.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {

/// Extents of the chunks for a dataset of these extents: at most 4 MiB, at least 1 MiB where the
/// dataset has as much, evenly divided, whole inner dimensions first. {3000, 1024} of 4 bytes -> {1000,
/// 1024}.
Shape chunk_shape(const Shape& extent, std::int64_t element_bytes);

/// Each chunk holds its elements, those past the tensor's end included, and this much of checksum.
constexpr std::int64_t checksum_bytes = 4;

/// Chunks in the grid of a tensor; 0 for one without elements.
std::int64_t chunk_count(const Shape& extent, const Shape& chunk);

/// Moves the offset of a chunk to that of the next of a grid with elements, in row-major order from zeros on;
/// false after the last.
bool advance_chunk(Shape& offset, const Shape& extent, const Shape& chunk);

/// Offsets of all chunks of a grid, in row-major order.
std::vector<Shape> chunk_offsets(const Shape& extent, const Shape& chunk);

/// The checksum of HDF5's fletcher32 filter: Fletcher's sums modulo 65535 over big-endian 16-bit words, an
/// odd last byte being the high half of a word. The filter appends it to the chunk, little endian.
std::uint32_t fletcher32(std::span<const char> bytes);

/// The dataset's extent for a tensor: a scalar is stored as one element, since checksums need chunks, and
/// carries the attribute rank = 0.
Shape stored_extent(const Shape& shape);
TensorRegion stored_region(const TensorRegion& region);

/// "" when `region` is a box inside a tensor of this shape; otherwise what is wrong.
std::string region_fault(const TensorRegion& region, const Shape& shape);

/// Room for the values of a region, row-major.
struct Destination {
  TensorRegion region;
  char* bytes;
};

/// Copies `box`, which lies inside both regions.
void copy_box(const TensorRegion& box, const TensorPart& from, const Destination& to,
              std::int64_t element_bytes);

/// A region of a tensor that a rank holds.
struct HeldRegion {
  int rank;
  int index;  ///< among those of its rank
  TensorRegion region;
};

/// Who brings together and writes one chunk, and from what.
struct ChunkPlan {
  int owner;  ///< a rank that holds most of the chunk; equals take turns
  std::vector<HeldRegion>
      pieces;  ///< boxes of the chunk, with who holds them; they may overlap where ranks agree
  std::vector<TensorRegion> missing;  ///< boxes that nobody holds
};

/// `box` is the chunk without what lies past the tensor's end, `turn` its number. Depends on its arguments
/// alone, so that all ranks find the same.
ChunkPlan plan_chunk(const TensorRegion& box, std::int64_t turn, const std::vector<HeldRegion>& held);

}  // namespace alpa
