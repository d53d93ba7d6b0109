#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// What each rank of a group owns of the tensors of a collective: its part is a row of pieces that lie
/// anywhere in memory. Memory of earlier parts is used again.
class OwnedParts {
 public:
  /// Bytes of one piece that lie together.
  struct Stretch {
    std::byte* data;
    std::byte* own;       ///< where its owner takes it from, or has the result; elsewhere that is `data`
    std::int64_t offset;  ///< from the beginning of the extent asked for
    std::int64_t bytes;
  };

  /// An owner's pieces follow one another in the order given. Where there are few bytes in more pieces than
  /// ranks, they are copied now, so that each part lies together, and what is theirs is these copies until
  /// unpack().
  void assign(std::span<const OwnedPiece>, int ranks);
  /// One piece each, in order of ranks, one after another from `whole` on. Rank `me` has its own at `own`.
  void assign_equal(void* whole, std::int64_t bytes_each, int ranks, int me, void* own);

  void unpack();  ///< the copies go to where they are from; nothing where there are none

  std::int64_t most_bytes() const { return *std::ranges::max_element(part_bytes_); }  ///< that a rank owns

  /// body(Stretch) for bytes [first, first + count) of the owner's part, as far as it has them.
  template <class Body>
  void for_each_stretch(int owner, std::int64_t first, std::int64_t count, Body body) const {
    const auto part =
        std::span(pieces_).subspan(first_piece_[owner], first_piece_[owner + 1] - first_piece_[owner]);
    for (auto piece = std::ranges::upper_bound(part, first, {}, &Piece::end);
         piece != part.end() && piece->begin < first + count; ++piece) {
      const std::int64_t begin = std::max(first, piece->begin), end = std::min(first + count, piece->end);
      const std::int64_t skipped = begin - piece->begin;
      body(Stretch{piece->data + skipped, piece->own + skipped, begin - first, end - begin});
    }
  }

 private:
  struct Piece {
    std::byte *data, *own;
    std::int64_t begin, end;  ///< in its owner's part
  };
  struct Packed {
    std::byte *copy, *piece;
    std::int64_t bytes;
  };

  void clear();
  void end_part(std::int64_t bytes);
  void pack();

  std::vector<Piece> pieces_;             ///< by owner; none of no bytes
  std::vector<std::size_t> first_piece_;  ///< by owner, and the end
  std::vector<std::int64_t> part_bytes_;  ///< by owner
  std::vector<Packed> packed_;
  std::vector<std::byte> memory_;  ///< of what is packed
};

}  // namespace alpa
