#include "libalpa/comm/owned_parts.h"

#include <cassert>
#include <cstring>

#include "libalpa/base/collective_traffic.h"

namespace alpa {

void OwnedParts::clear() {
  pieces_.clear();
  first_piece_.assign(1, 0);
  part_bytes_.clear();
  packed_.clear();
}

void OwnedParts::end_part(std::int64_t bytes) {
  part_bytes_.push_back(bytes);
  first_piece_.push_back(pieces_.size());
}

void OwnedParts::assign(std::span<const OwnedPiece> pieces, int ranks) {
  clear();
  for (int owner = 0; owner < ranks; ++owner) {
    std::int64_t bytes = 0;
    for (const OwnedPiece& piece : pieces) {
      assert(piece.owner >= 0 && piece.owner < ranks && piece.bytes >= 0);
      if (piece.owner != owner || piece.bytes == 0) continue;
      auto* const data = static_cast<std::byte*>(piece.data);
      pieces_.push_back({data, data, bytes, bytes + piece.bytes});
      bytes += piece.bytes;
    }
    end_part(bytes);
  }
  if (total_bytes(pieces) <= kDoublingAllGatherBytes && std::ssize(pieces_) > ranks) pack();
}

void OwnedParts::assign_equal(void* whole, std::int64_t bytes_each, int ranks, int me, void* own) {
  clear();
  for (int owner = 0; owner < ranks; ++owner) {
    auto* const data = static_cast<std::byte*>(whole) + owner * bytes_each;
    pieces_.push_back({data, owner == me ? static_cast<std::byte*>(own) : data, 0, bytes_each});
    end_part(bytes_each);
  }
}

void OwnedParts::pack() {
  memory_.resize(kDoublingAllGatherBytes);
  std::byte* next = memory_.data();
  for (const Piece& piece : pieces_) {
    const std::int64_t length = piece.end - piece.begin;
    std::memcpy(next, piece.data, static_cast<std::size_t>(length));
    packed_.push_back({next, piece.data, length});
    next += length;
  }
  pieces_.clear();
  first_piece_.assign(1, 0);
  next = memory_.data();
  for (const std::int64_t length : part_bytes_) {
    if (length > 0) pieces_.push_back({next, next, 0, length});
    first_piece_.push_back(pieces_.size());
    next += length;
  }
}

void OwnedParts::unpack() {
  for (const auto& [copy, piece, bytes] : packed_) std::memcpy(piece, copy, static_cast<std::size_t>(bytes));
  packed_.clear();
}

}  // namespace alpa
