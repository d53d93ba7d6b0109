#include "libalpa/h5/chunk_transfer.h"

#include <algorithm>
#include <map>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

// Bounds the memory beside the tensors themselves: this many chunks, and as much in messages.
constexpr std::size_t chunks_at_once = 8;

std::string room(std::int64_t bytes) { return std::string(static_cast<std::size_t>(bytes), '\0'); }

}  // namespace

ChunkTransfer::ChunkTransfer(const Ranks& ranks, const TensorType& type, std::vector<HeldRegion> held,
                             std::span<const TensorPart> mine)
    : ranks_(ranks),
      held_(std::move(held)),
      mine_(mine),
      element_bytes_(dtype_bytes(type.dtype)),
      extent_(stored_extent(type.shape)),
      chunk_(chunk_shape(extent_, element_bytes_)),
      offsets_(chunk_offsets(extent_, chunk_)) {}

std::optional<TensorRegion> ChunkTransfer::missing() {
  plans_.clear();
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    plans_.push_back(plan_chunk(clipped(i), static_cast<std::int64_t>(i), held_));
    if (!plans_.back().missing.empty()) return plans_.back().missing.front();
  }
  return std::nullopt;
}

void ChunkTransfer::run(const std::function<void(std::size_t, std::string_view)>& take) {
  std::optional<Error> failure;
  const std::int64_t chunk_bytes = element_count(chunk_) * element_bytes_;
  std::map<int, std::int64_t> written;  // by each rank since the last meeting; all ranks count alike
  for (std::size_t first = 0; first < plans_.size(); first += chunks_at_once) {
    for (Chunk& chunk : exchange(first, std::min(plans_.size(), first + chunks_at_once))) {
      if (failure) continue;
      complete(chunk);
      try {
        take(chunk.number, chunk.bytes);
      } catch (const Error& error) {
        failure = error;
      }
    }
    std::int64_t most = 0;
    for (std::size_t i = first; i < std::min(plans_.size(), first + chunks_at_once); ++i)
      most = std::max(most, written[plans_[i].owner] += chunk_bytes);
    if (most < bytes_between_meetings) continue;
    ranks_.meet();
    written.clear();
  }
  if (failure) throw *failure;
}

TensorRegion ChunkTransfer::whole(std::size_t number) const { return {offsets_[number], chunk_}; }

TensorRegion ChunkTransfer::clipped(std::size_t number) const {
  TensorRegion box = whole(number);
  for (std::size_t d = 0; d < extent_.size(); ++d)
    box.count[d] = std::min(chunk_[d], extent_[d] - box.offset[d]);
  return box;
}

std::int64_t ChunkTransfer::bytes_of(const HeldRegion& piece) const {
  return element_count(piece.region.count) * element_bytes_;
}

void ChunkTransfer::copy_mine(const HeldRegion& piece, const Destination& to) const {
  const TensorPart& part = mine_[piece.index];
  copy_box(piece.region, {stored_region(part.region), part.data}, to, element_bytes_);
}

// What this rank owns of the chunks [first, last), with the others' pieces beside it.
std::vector<ChunkTransfer::Chunk> ChunkTransfer::exchange(std::size_t first, std::size_t last) const {
  std::vector<Chunk> owned;
  std::vector<std::pair<int, std::string>> packed;
  const int me = ranks_.rank();
  for (std::size_t i = first; i < last; ++i) {
    const bool is_mine = plans_[i].owner == me;
    if (is_mine) owned.push_back({i, room(element_count(chunk_) * element_bytes_), {}});
    for (const HeldRegion& piece : plans_[i].pieces) {
      if (is_mine && piece.rank == me)
        copy_mine(piece, {whole(i), owned.back().bytes.data()});
      else if (is_mine)
        owned.back().foreign.emplace_back(&piece, room(bytes_of(piece)));
      else if (piece.rank == me)
        copy_mine(piece,
                  {piece.region, packed.emplace_back(plans_[i].owner, room(bytes_of(piece))).second.data()});
    }
  }
  std::vector<Ranks::Message> sent, received;
  for (auto& [rank, bytes] : packed)
    sent.push_back({rank, bytes.data(), static_cast<std::int64_t>(bytes.size())});
  for (Chunk& chunk : owned)
    for (auto& [piece, bytes] : chunk.foreign)
      received.push_back({piece->rank, bytes.data(), bytes_of(*piece)});
  ranks_.exchange(sent, received);
  return owned;
}

// Brings in the others' pieces and appends the checksum.
void ChunkTransfer::complete(Chunk& chunk) const {
  for (const auto& [piece, bytes] : chunk.foreign)
    copy_box(piece->region, {piece->region, bytes.data()}, {whole(chunk.number), chunk.bytes.data()},
             element_bytes_);
  const std::uint32_t checksum = fletcher32(chunk.bytes);
  for (int i = 0; i < checksum_bytes; ++i) chunk.bytes.push_back(static_cast<char>(checksum >> (8 * i)));
}

}  // namespace alpa
