#pragma once
// Internal to this module.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libalpa/h5/chunks.h"
#include "libalpa/h5/ranks.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {

/// The chunks of one tensor on their way from what the ranks hold into the file.
class ChunkTransfer {
 public:
  /// `held` lists what all ranks hold, `mine` the values of this rank's, by HeldRegion::index. Both regions
  /// of scalars are as stored.
  ChunkTransfer(const Ranks& ranks, const TensorType& type, std::vector<HeldRegion> held,
                std::span<const TensorPart> mine);

  /// A part that nobody holds, if there is one; all ranks find the same. To be asked before run().
  std::optional<TensorRegion> missing();

  /// All ranks meet before any of them has written more than that and a few chunks.
  static constexpr std::int64_t bytes_between_meetings = 64 << 20;

  /// Calls take(number of the chunk, its bytes in the file) for each chunk that this rank owns, once the
  /// others' parts of it have arrived. Should take() throw, the messages still move, since other ranks wait
  /// for them; then its error is thrown.
  void run(const std::function<void(std::size_t, std::string_view)>& take);

 private:
  struct Chunk {
    std::size_t number;
    std::string bytes;
    std::vector<std::pair<const HeldRegion*, std::string>> foreign;  // pieces of other ranks
  };

  TensorRegion whole(std::size_t number) const;
  TensorRegion clipped(std::size_t number) const;
  std::int64_t bytes_of(const HeldRegion& piece) const;
  void copy_mine(const HeldRegion& piece, const Destination& to) const;
  std::vector<Chunk> exchange(std::size_t first, std::size_t last) const;
  void complete(Chunk& chunk) const;

  const Ranks& ranks_;
  std::vector<HeldRegion> held_;
  std::span<const TensorPart> mine_;
  std::int64_t element_bytes_;
  Shape extent_, chunk_;
  std::vector<Shape> offsets_;
  std::vector<ChunkPlan> plans_;
};

}  // namespace alpa
