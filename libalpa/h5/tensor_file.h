#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

class Communicator;
class Stream;

/// The ranks that write a file together; messages are in host memory.
struct WritingRanks {
  Communicator& all;
  Stream& host;
};

/// Called with the bytes of each piece of a long reading.
using BytesRead = std::function<void(std::int64_t bytes)>;

/// A box of a tensor, in elements. {{0, 128}, {64, 64}} is rows 0..63, columns 128..191. The whole of a
/// scalar is {}.
struct TensorRegion {
  Shape offset, count;
};

/// Copies the bytes from `first` on of values, row-major, wherever they are, to host memory.
using ReadBytes = std::function<void(std::int64_t first, std::span<std::byte> into)>;

/// What a rank holds of a tensor: the values of a region at the beginning of memory that has the shape
/// `memory`, which may be larger.
struct TensorPart {
  TensorRegion region;
  Shape memory;
  ReadBytes read;

  TensorPart(TensorRegion held, Shape memory_shape, ReadBytes read_bytes)
      : region(std::move(held)), memory(std::move(memory_shape)), read(std::move(read_bytes)) {}
  /// In host memory, in row-major order of the region.
  TensorPart(TensorRegion held, const void* data);
};

/// Writes a tensor file: whole tensors under global names ("/tensors/decoder.0.attention.query"; no '/' in a
/// name), so that any number of ranks can read it back. The ranks of a communicator write it together, each
/// its share of the chunks (tensor_shares.h).
///
/// Not by parallel HDF5: rank 0 lays the file out, and ranks write whole chunks in place with a checksum
/// (fletcher32) made here. So one failing rank fails all alike, and the bytes do not depend on their number.
/// In HDF5's 1.10 format, whose metadata carries checksums.
///
///     TensorWriter file("step-100.h5", "alpa-checkpoint", "1.0", ranks);
///     file.attribute("step", 100);
///     for (const auto& [name, type] : state) file.tensor(name, type, my_parts(name));
///     file.publish();
///
/// The constructor, the calls that write and publish are collective: all ranks make the same calls in the
/// same order, and describe the same tensors. Provenance and attributes are rank 0's. A failure on one rank
/// is thrown alike on all, at the latest by publish(); the file is then lost, and nothing stands under its
/// name. No wait of a rank for another is for more than 64 MiB on their way to the disk. The bytes depend on
/// the tensors and the values only, not on the ranks or on how they are written (/provenance apart). bf16 is
/// stored as a 16-bit float type, committed at /types/bfloat16, that HDF5's tools print as numbers. Each
/// chunk of 1 to 4 MiB carries a checksum.
class TensorWriter {
 public:
  /// For this process alone.
  TensorWriter(std::filesystem::path path, std::string_view format, std::string_view format_version);

  /// For all of these ranks.
  TensorWriter(std::filesystem::path path, std::string_view format, std::string_view format_version,
               const WritingRanks& ranks);

  /// Waits for nobody. Without publish() before, gives up what is being written, and rank 0 removes the
  /// temporary file.
  ~TensorWriter();
  TensorWriter(const TensorWriter&) = delete;
  TensorWriter& operator=(const TensorWriter&) = delete;

  /// Attributes (of the root), provenance and tensors are given before anything is written.
  void attribute(const std::string& name, std::string_view value);
  void attribute(const std::string& name, double value);
  template <std::integral Integer>
  void attribute(const std::string& name, Integer value) {
    integer_attribute(name, static_cast<std::int64_t>(value));
  }
  void provenance(Provenance provenance);

  /// A tensor, and what this rank holds of it. The parts of all ranks together cover it; where they overlap
  /// they hold the same values, and each piece is written by one of those that hold it. Parts are read while
  /// the file is written, tensor by tensor in this order.
  void tensor(const std::string& name, const TensorType& type, std::vector<TensorPart> parts);

  /// What a rank takes of host memory at most while it writes, beside a snapshot.
  static constexpr std::int64_t buffer_bytes = 64 << 20;

  /// Copies this rank's share, which takes as much host memory (tensor_shares()), and has a thread of low
  /// priority write it: parts are free for other use on return. publish() waits for that thread.
  void write_in_background();

  /// Whether the thread is done with this rank's share, or has failed.
  bool is_written() const;

  /// Whether the temporary file is still where it was made; known to rank 0.
  bool is_in_place() const;

  /// Writes what is not written yet, closes, brings the file to disk and gives it its name; when it returns,
  /// that holds on all ranks.
  void publish();

 private:
  void integer_attribute(const std::string& name, std::int64_t value);

  struct Open;
  std::unique_ptr<Open> open_;
};

/// Reads a tensor file, each process by itself, looked through first as H5Reader does. Failures are
/// Error(input).
class TensorReader {
 public:
  TensorReader(const std::filesystem::path& path, std::string_view format,
               std::string_view supported_version);
  ~TensorReader();
  TensorReader(TensorReader&&) noexcept;
  TensorReader& operator=(TensorReader&&) noexcept;

  const std::string& format_version() const;                 ///< as in the file
  const std::map<std::string, TensorType>& tensors() const;  ///< by name

  bool has_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;
  std::int64_t int64_attribute(const std::string& name) const;
  double double_attribute(const std::string& name) const;

  /// Fills `data`, host memory for the elements of `region` in row-major order.
  void read(const std::string& name, const TensorRegion& region, void* data) const;
  void read_all(const std::string& name, void* data) const;

  /// The same in pieces of at most 4 MiB, each a box that lies in one stretch of the region: calls
  /// take(box, values) for one after the other. Values are there until it returns.
  using TakePiece = std::function<void(const TensorRegion& box, std::span<const std::byte> values)>;
  void read(const std::string& name, const TensorRegion& region, const TakePiece& take) const;

  /// Reads everything; throws where a checksum does not match, naming the tensor.
  void verify(const BytesRead& read = {}) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace alpa
