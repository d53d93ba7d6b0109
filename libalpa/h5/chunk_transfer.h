#pragma once
// Internal to this module.
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "libalpa/h5/chunks.h"
#include "libalpa/h5/ranks.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {

/// Bytes that one chunk takes in the file; its checksum, at the end, is yet to be made.
struct ChunkBytes {
  std::unique_ptr<char[]> bytes;
  std::int64_t count = 0;
  std::span<char> span() const { return {bytes.get(), static_cast<std::size_t>(count)}; }
};

/// A tensor that ranks write together, as one of them sees it.
struct SharedTensor {
  TensorType type;
  std::vector<TensorPart> mine;   ///< by HeldRegion::index
  std::vector<ChunkPlan> chunks;  ///< in row-major order
};

/// The chunks of tensors on their way from what the ranks hold to their owners.
class ChunkTransfer {
 public:
  /// Keeps references. All ranks have the same tensors and plans.
  ChunkTransfer(const Ranks& ranks, std::span<const SharedTensor> tensors)
      : ranks_(ranks), tensors_(tensors) {}

  /// Makes room for all chunks that this rank owns, for who keeps them: later it would be short of memory
  /// while others wait for its messages. Throws std::bad_alloc.
  void reserve();

  /// All ranks meet before any of them has taken more than that and a few chunks.
  static constexpr std::int64_t bytes_between_meetings = 64 << 20;

  /// Calls take(tensor, number of the chunk, its bytes) for each chunk that this rank owns, once the others'
  /// parts of it have arrived. Should take() or a part's read() throw, messages still move, since other ranks
  /// wait for them, until all ranks have met and give up; then its error is thrown, on this rank alone.
  using Take = std::function<void(std::size_t tensor, std::size_t chunk, ChunkBytes)>;
  void run(const Take& take);

 private:
  struct Place {
    std::size_t tensor, chunk;
    TensorRegion whole;  ///< with what lies past the tensor's end
  };
  struct Owned {
    const Place* place;
    ChunkBytes bytes;
    std::vector<std::pair<const HeldRegion*, ChunkBytes>> foreign;  ///< pieces of other ranks
  };

  std::vector<Place> places() const;
  ChunkBytes room_for_own(std::int64_t bytes);
  std::vector<Owned> exchange(std::span<const Place> batch);
  void copy_mine(const Place&, const HeldRegion& piece, const Destination& to);
  void note_failure(const std::function<void()>& body);
  const ChunkPlan& plan(const Place& place) const { return tensors_[place.tensor].chunks[place.chunk]; }
  std::int64_t element_bytes(const Place& place) const {
    return dtype_bytes(tensors_[place.tensor].type.dtype);
  }

  const Ranks& ranks_;
  std::span<const SharedTensor> tensors_;
  std::vector<std::byte> buffer_;  ///< of copy_part()
  std::deque<ChunkBytes> reserved_;  ///< in the order of places()
  std::exception_ptr failure_;
};

}  // namespace alpa
