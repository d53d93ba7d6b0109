#pragma once
// Internal to this module: how tensors are cut into checksummed chunks, and chunks put together from what
// ranks hold.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/tensor_shares.h"

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

/// Values of a region, row-major, from element `first` of it on.
struct RegionValues {
  TensorRegion region;
  const char* bytes;
  std::int64_t first = 0;
};

/// Copies `box`, which lies inside both regions.
void copy_box(const TensorRegion& box, const RegionValues& from, const Destination& to,
              std::int64_t element_bytes);

/// The same from what a rank holds. What has to be read beside the box, or put elsewhere in rows, goes
/// through `buffer`, by at most 4 MiB (or one row) at a time.
void copy_part(const TensorRegion& box, const TensorPart& from, const Destination& to,
               std::int64_t element_bytes, std::vector<std::byte>& buffer);

/// The part of both; with a count of 0 where they do not meet.
TensorRegion intersection(const TensorRegion& a, const TensorRegion& b);

/// Who brings together and writes one chunk, and from what.
struct ChunkPlan {
  int owner = 0;
  std::vector<HeldRegion>
      pieces;  ///< boxes of the chunk, with who holds them; they may overlap where ranks agree
  std::vector<TensorRegion> missing;  ///< boxes that nobody holds
};

/// `box` is the chunk without what lies past the tensor's end. Its owner is a rank that holds most of it, of
/// several the one that has least in `written`, by rank, then the lowest. Depends on its arguments alone, so
/// that all ranks find the same. Regions of scalars are as stored.
ChunkPlan plan_chunk(const TensorRegion& box, const std::vector<HeldRegion>& held,
                     std::span<const std::int64_t> written);

/// Of the chunks of each tensor, in row-major order; those of the most bytes are given to ranks first.
std::vector<std::vector<ChunkPlan>> plan_chunks(std::span<const HeldTensor> tensors, int ranks);

/// Bytes of a chunk of a tensor in the file, its checksum included.
std::int64_t chunk_file_bytes(const TensorType& type);

}  // namespace alpa
