#include "libalpa/h5/chunks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "libalpa/h5/memory_file.h"

namespace alpa {
namespace {

constexpr std::int64_t most_chunk_bytes = 4 << 20;

// Appends what is left of `box` outside `hole`: per dimension the slab before and the slab after it.
void append_difference(TensorRegion box, const TensorRegion& hole, std::vector<TensorRegion>& rest) {
  const TensorRegion common = intersection(box, hole);
  if (element_count(common.count) == 0) return rest.push_back(std::move(box));
  for (std::size_t i = 0; i < box.offset.size(); ++i) {
    const std::int64_t begin = box.offset[i], end = begin + box.count[i];
    const std::int64_t hole_begin = common.offset[i], hole_end = hole_begin + common.count[i];
    box.count[i] = hole_begin - begin;
    if (box.count[i] > 0) rest.push_back(box);
    box.offset[i] = hole_end;
    box.count[i] = end - hole_end;
    if (box.count[i] > 0) rest.push_back(box);
    box.offset[i] = hole_begin;
    box.count[i] = hole_end - hole_begin;
  }
}

// Index of `at` in the row-major values of `region`.
std::int64_t index_in(const TensorRegion& region, const Shape& at) {
  std::int64_t index = 0;
  for (std::size_t i = 0; i < at.size(); ++i) index = index * region.count[i] + (at[i] - region.offset[i]);
  return index;
}

// Elements of `region` from the first of `box` to its last.
std::int64_t stretch(const TensorRegion& box, const TensorRegion& region) {
  Shape last = box.offset;
  for (std::size_t i = 0; i < last.size(); ++i) last[i] += box.count[i] - 1;
  return index_in(region, last) - index_in(region, box.offset) + 1;
}

// Moves `at` to the next position of `box` in row-major order, dimensions from `rank` on left alone; false at
// the end.
bool advance(Shape& at, const TensorRegion& box, std::size_t rank) {
  for (std::size_t i = rank; i-- > 0;) {
    if (++at[i] < box.offset[i] + box.count[i]) return true;
    at[i] = box.offset[i];
  }
  return false;
}

}  // namespace

Shape chunk_shape(const Shape& extent, std::int64_t element_bytes) {
  Shape chunk(extent.size(), 1);
  std::int64_t bytes = element_bytes;
  for (std::size_t i = extent.size(); i-- > 0;) {
    const std::int64_t most = std::max<std::int64_t>(1, most_chunk_bytes / bytes);
    const std::int64_t pieces = std::max<std::int64_t>(1, (extent[i] + most - 1) / most);
    chunk[i] = std::max<std::int64_t>(1, (extent[i] + pieces - 1) / pieces);
    bytes *= chunk[i];
    if (chunk[i] < extent[i]) break;
  }
  return chunk;
}

std::int64_t chunk_count(const Shape& extent, const Shape& chunk) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < extent.size(); ++i) count *= (extent[i] + chunk[i] - 1) / chunk[i];
  return count;
}

bool advance_chunk(Shape& offset, const Shape& extent, const Shape& chunk) {
  for (std::size_t i = offset.size(); i-- > 0;) {
    offset[i] += chunk[i];
    if (offset[i] < extent[i]) return true;
    offset[i] = 0;
  }
  return false;
}

std::vector<Shape> chunk_offsets(const Shape& extent, const Shape& chunk) {
  if (element_count(extent) == 0) return {};
  std::vector<Shape> offsets{Shape(extent.size(), 0)};
  for (Shape at = offsets[0]; advance_chunk(at, extent, chunk);) offsets.push_back(at);
  return offsets;
}

std::uint32_t fletcher32(std::span<const char> bytes) {
  // The second sum counts each word once for itself and once for every word after it. A block is short enough
  // for its sums to fit 64 bits before they are reduced.
  constexpr std::size_t block_words = 1 << 14;
  constexpr std::uint64_t modulus = 65535;
  const auto reduced = [](std::uint64_t sum) { return sum == 0 ? 0 : (sum - 1) % modulus + 1; };
  std::uint64_t first = 0, second = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t words = std::min(block_words, (bytes.size() - at + 1) / 2);
    const std::size_t whole = std::min(words, (bytes.size() - at) / 2);
    std::uint64_t sum = 0, weighted = 0;
    for (std::size_t i = 0; i < whole; ++i) {
      std::uint16_t word = 0;
      std::memcpy(&word, bytes.data() + at + 2 * i, 2);
      const std::uint64_t value = __builtin_bswap16(word);
      sum += value;
      weighted += (words - i) * value;
    }
    if (whole < words) {
      const std::uint64_t value =
          static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[bytes.size() - 1])) << 8;
      sum += value;
      weighted += value;
    }
    second = reduced(second + words * first + weighted);
    first = reduced(first + sum);
    at += 2 * words;
  }
  return static_cast<std::uint32_t>(second << 16 | first);
}

Shape stored_extent(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

TensorRegion stored_region(const TensorRegion& region) {
  return region.count.empty() ? TensorRegion{{0}, {1}} : region;
}

std::string region_fault(const TensorRegion& region, const Shape& shape) {
  bool inside = region.offset.size() == shape.size() && region.count.size() == shape.size();
  for (std::size_t i = 0; inside && i < shape.size(); ++i)
    inside = region.offset[i] >= 0 && region.count[i] >= 0 && region.count[i] <= shape[i] &&
             region.offset[i] <= shape[i] - region.count[i];
  if (inside) return {};
  return fmt::format("region {} at offset {} is not inside {}", shape_text(region.count),
                     shape_text(region.offset), shape_text(shape));
}

void copy_box(const TensorRegion& box, const RegionValues& from, const Destination& to,
              std::int64_t element_bytes) {
  if (element_count(box.count) == 0) return;
  const auto row_bytes = static_cast<std::size_t>(box.count.back() * element_bytes);
  Shape at = box.offset;
  do {
    std::memcpy(to.bytes + index_in(to.region, at) * element_bytes,
                from.bytes + (index_in(from.region, at) - from.first) * element_bytes, row_bytes);
  } while (advance(at, box, at.size() - 1));
}

void copy_part(const TensorRegion& box, const TensorPart& from, const Destination& to,
               std::int64_t element_bytes, std::vector<std::byte>& buffer) {
  const std::int64_t count = element_count(box.count);
  if (count == 0) return;
  const TensorRegion memory{stored_region(from.region).offset, stored_extent(from.memory)};
  const std::int64_t first = index_in(memory, box.offset), span = stretch(box, memory);
  if (span == count && stretch(box, to.region) == count)
    return from.read(
        first * element_bytes,
        {reinterpret_cast<std::byte*>(to.bytes + index_in(to.region, box.offset) * element_bytes),
         static_cast<std::size_t>(count * element_bytes)});
  const auto splits = std::find_if(box.count.begin(), box.count.end() - 1, [](auto n) { return n > 1; });
  if (span * element_bytes > most_chunk_bytes && splits != box.count.end() - 1) {
    const auto d = static_cast<std::size_t>(splits - box.count.begin());
    TensorRegion half = box;
    half.count[d] /= 2;
    copy_part(half, from, to, element_bytes, buffer);
    half.offset[d] += half.count[d];
    half.count[d] = box.count[d] - half.count[d];
    return copy_part(half, from, to, element_bytes, buffer);
  }
  buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(span * element_bytes)));
  from.read(first * element_bytes, std::span(buffer).first(static_cast<std::size_t>(span * element_bytes)));
  copy_box(box, {memory, reinterpret_cast<const char*>(buffer.data()), first}, to, element_bytes);
}

TensorRegion intersection(const TensorRegion& a, const TensorRegion& b) {
  TensorRegion both = a;
  for (std::size_t i = 0; i < a.offset.size(); ++i) {
    both.offset[i] = std::max(a.offset[i], b.offset[i]);
    const std::int64_t end = std::min(a.offset[i] + a.count[i], b.offset[i] + b.count[i]);
    both.count[i] = std::max<std::int64_t>(0, end - both.offset[i]);
  }
  return both;
}

ChunkPlan plan_chunk(const TensorRegion& box, const std::vector<HeldRegion>& held,
                     std::span<const std::int64_t> written) {
  std::vector<HeldRegion> touching;
  std::map<int, std::int64_t> elements;  // that each rank holds, its own overlaps counted again
  for (const HeldRegion& part : held) {
    TensorRegion common = intersection(box, part.region);
    const std::int64_t count = element_count(common.count);
    if (count == 0) continue;
    elements[part.rank] += count;
    touching.push_back({part.rank, part.index, std::move(common)});
  }
  ChunkPlan plan{0, {}, {box}};
  if (touching.empty()) return plan;

  std::int64_t most = 0;
  for (const auto& [rank, count] : elements) most = std::max(most, count);
  plan.owner = -1;
  for (const auto& [rank, count] : elements)
    if (count == most && (plan.owner < 0 || written[rank] < written[plan.owner])) plan.owner = rank;

  // The owner's own first: they need no message. Then whatever still adds something.
  std::stable_partition(touching.begin(), touching.end(),
                        [&](const HeldRegion& p) { return p.rank == plan.owner; });
  for (HeldRegion& part : touching) {
    std::vector<TensorRegion> rest;
    std::int64_t before = 0, after = 0;
    for (const TensorRegion& missing : plan.missing) {
      before += element_count(missing.count);
      append_difference(missing, part.region, rest);
    }
    for (const TensorRegion& missing : rest) after += element_count(missing.count);
    if (after == before) continue;
    plan.missing = std::move(rest);
    plan.pieces.push_back(std::move(part));
  }
  return plan;
}

std::int64_t chunk_file_bytes(const TensorType& type) {
  const std::int64_t element = dtype_bytes(type.dtype);
  return element_count(chunk_shape(stored_extent(type.shape), element)) * element + checksum_bytes;
}

std::int64_t most_file_bytes(std::span<const TensorType> tensors) {
  constexpr std::int64_t page = MemoryFile::page_bytes, of_file = 256 << 10, of_tensor = 8 << 10,
                         of_chunk = 64;
  std::int64_t bytes = of_file;
  for (const TensorType& type : tensors) {
    const Shape extent = stored_extent(type.shape);
    const std::int64_t chunks = chunk_count(extent, chunk_shape(extent, dtype_bytes(type.dtype)));
    bytes += of_tensor + chunks * (of_chunk + (chunk_file_bytes(type) + page - 1) / page * page);
  }
  return bytes;
}

std::vector<std::vector<ChunkPlan>> plan_chunks(std::span<const HeldTensor> tensors, int ranks) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t t) { return chunk_file_bytes(tensors[t].type); });
  std::vector<std::int64_t> written(static_cast<std::size_t>(ranks));
  std::vector<std::vector<ChunkPlan>> plans(tensors.size());
  for (const std::size_t t : order) {
    const Shape extent = stored_extent(tensors[t].type.shape);
    const Shape chunk = chunk_shape(extent, dtype_bytes(tensors[t].type.dtype));
    std::vector<HeldRegion> held = tensors[t].held;
    for (HeldRegion& part : held) part.region = stored_region(part.region);
    for (const Shape& offset : chunk_offsets(extent, chunk)) {
      const TensorRegion box = intersection({offset, chunk}, {Shape(extent.size(), 0), extent});
      plans[t].push_back(plan_chunk(box, held, written));
      written[plans[t].back().owner] += chunk_file_bytes(tensors[t].type);
    }
  }
  return plans;
}

std::vector<std::int64_t> tensor_shares(std::span<const HeldTensor> tensors, int ranks) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(ranks));
  const std::vector<std::vector<ChunkPlan>> plans = plan_chunks(tensors, ranks);
  for (std::size_t t = 0; t < tensors.size(); ++t)
    for (const ChunkPlan& chunk : plans[t]) shares[chunk.owner] += chunk_file_bytes(tensors[t].type);
  return shares;
}

}  // namespace alpa
