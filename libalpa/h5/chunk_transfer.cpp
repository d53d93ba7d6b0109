#include "libalpa/h5/chunk_transfer.h"

#include <algorithm>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

// Of chunks under way at once. A rank has at most so much of its own chunks and of messages to the owners of
// others, as much again of messages to it, and a piece in copy_part()'s buffer.
constexpr std::int64_t batch_bytes = 24 << 20;
static_assert(2 * batch_bytes + 2 * (4 << 20) <= TensorWriter::buffer_bytes);

ChunkBytes room(std::int64_t bytes) {
  return {std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(bytes)), bytes};
}

}  // namespace

void ChunkTransfer::reserve() {
  for (const Place& place : places())
    if (plan(place).owner == ranks_.rank())
      reserved_.push_back(room(chunk_file_bytes(tensors_[place.tensor].type)));
}

ChunkBytes ChunkTransfer::room_for_own(std::int64_t bytes) {
  if (reserved_.empty()) return room(bytes);
  ChunkBytes first = std::move(reserved_.front());
  reserved_.pop_front();
  return first;
}

void ChunkTransfer::run(const Take& take) {
  const std::vector<Place> all = places();
  std::vector<std::int64_t> taken(static_cast<std::size_t>(ranks_.size()));  // by each since the last meeting
  for (auto first = all.begin(); first != all.end();) {
    auto last = first;
    for (std::int64_t bytes = 0; last != all.end() && (bytes == 0 || bytes < batch_bytes); ++last) {
      const std::int64_t chunk = chunk_file_bytes(tensors_[last->tensor].type);
      if (bytes > 0 && bytes + chunk > batch_bytes) break;
      bytes += chunk;
      taken[plan(*last).owner] += chunk;
    }
    for (Owned& owned : exchange({first, last})) {
      const Place& place = *owned.place;
      for (const auto& [piece, bytes] : owned.foreign)
        copy_box(piece->region, {piece->region, bytes.bytes.get()}, {place.whole, owned.bytes.bytes.get()},
                 element_bytes(place));
      note_failure([&] { take(place.tensor, place.chunk, std::move(owned.bytes)); });
    }
    first = last;
    if (*std::ranges::max_element(taken) < bytes_between_meetings) continue;
    if (ranks_.any(failure_ != nullptr)) break;
    std::ranges::fill(taken, 0);
  }
  if (failure_) std::rethrow_exception(failure_);
}

std::vector<ChunkTransfer::Place> ChunkTransfer::places() const {
  std::vector<Place> all;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const Shape extent = stored_extent(tensors_[t].type.shape);
    const Shape chunk = chunk_shape(extent, dtype_bytes(tensors_[t].type.dtype));
    const std::vector<Shape> offsets = chunk_offsets(extent, chunk);
    for (std::size_t c = 0; c < offsets.size(); ++c) all.push_back({t, c, {offsets[c], chunk}});
  }
  return all;
}

// After a failure what is sent means nothing.
void ChunkTransfer::note_failure(const std::function<void()>& body) {
  if (failure_) return;
  try {
    body();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::peer) throw;
    failure_ = std::current_exception();
  } catch (const std::exception&) {
    failure_ = std::current_exception();
  }
}

void ChunkTransfer::copy_mine(const Place& place, const HeldRegion& piece, const Destination& to) {
  note_failure([&] {
    copy_part(piece.region, tensors_[place.tensor].mine[piece.index], to, element_bytes(place), buffer_);
  });
}

// What this rank owns of a batch, with the others' pieces beside it.
std::vector<ChunkTransfer::Owned> ChunkTransfer::exchange(std::span<const Place> batch) {
  std::vector<Owned> all;
  std::vector<std::pair<int, ChunkBytes>> packed;
  const int me = ranks_.rank();
  for (const Place& place : batch) {
    const TensorType& type = tensors_[place.tensor].type;
    const auto bytes_of = [&](const HeldRegion& piece) {
      return element_count(piece.region.count) * element_bytes(place);
    };
    const bool is_mine = plan(place).owner == me;
    if (is_mine) {
      all.push_back({&place, room_for_own(chunk_file_bytes(type)), {}});
      const Shape extent = stored_extent(type.shape);
      if (intersection(place.whole, {Shape(extent.size(), 0), extent}).count != place.whole.count)
        std::ranges::fill(all.back().bytes.span(), '\0');  // past the tensor's end
    }
    for (const HeldRegion& piece : plan(place).pieces) {
      if (is_mine && piece.rank == me)
        copy_mine(place, piece, {place.whole, all.back().bytes.bytes.get()});
      else if (is_mine)
        all.back().foreign.emplace_back(&piece, room(bytes_of(piece)));
      else if (piece.rank == me)
        copy_mine(
            place, piece,
            {piece.region, packed.emplace_back(plan(place).owner, room(bytes_of(piece))).second.bytes.get()});
    }
  }
  std::vector<Ranks::Message> sent, received;
  for (const auto& [rank, bytes] : packed) sent.push_back({rank, bytes.bytes.get(), bytes.count});
  for (const Owned& owned : all)
    for (const auto& [piece, bytes] : owned.foreign)
      received.push_back({piece->rank, bytes.bytes.get(), bytes.count});
  ranks_.exchange(sent, received);
  return all;
}

}  // namespace alpa
