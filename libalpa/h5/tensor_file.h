#pragma once
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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

/// The values of a region: host memory in row-major order of the region.
struct TensorPart {
  TensorRegion region;
  const void* data;
};

/// Writes a tensor file: whole tensors under global names ("/tensors/decoder.0.attention.query"; no '/' in a
/// name), so that any number of ranks can read it back. The ranks of a communicator write it together, each
/// its regions.
///
/// Not by parallel HDF5: rank 0 lays the file out, and ranks write whole chunks in place with a checksum
/// (fletcher32) made here. So one failing rank fails all alike, and the bytes do not depend on their number.
/// In HDF5's 1.10 format, whose metadata carries checksums.
///
///     TensorWriter file("step-100.h5", "alpa-checkpoint", "1.0", ranks);
///     file.attribute("step", 100);
///     for (const auto& [name, type] : state) file.declare(name, type);
///     for (const auto& [name, type] : state) file.write(name, my_region(name), my_values(name));
///     file.publish();
///
/// The constructor, write and publish are collective: all ranks make the same calls in the same order, and
/// declare the same. Provenance and attributes are rank 0's. A failure on one rank is thrown alike on all, at
/// the latest by publish(); the file is then lost, and nothing stands under its name. No wait of a rank for
/// another is for more than 64 MiB on their way to the disk. The bytes depend on the
/// declarations and the values only, not on the number of ranks (/provenance apart). bf16 is stored as a
/// 16-bit float type, committed at /types/bfloat16, that HDF5's tools print as numbers. Each chunk of 1 to 4
/// MiB carries a checksum.
class TensorWriter {
 public:
  /// For this process alone.
  TensorWriter(std::filesystem::path path, std::string_view format, std::string_view format_version);

  /// For all of these ranks.
  TensorWriter(std::filesystem::path path, std::string_view format, std::string_view format_version,
               const WritingRanks& ranks);

  /// Waits for nobody. Without publish() before, rank 0 removes the temporary file.
  ~TensorWriter();
  TensorWriter(const TensorWriter&) = delete;
  TensorWriter& operator=(const TensorWriter&) = delete;

  /// All attributes (of the root), the provenance and all declarations come before the first write.
  void attribute(const std::string& name, std::string_view value);
  void attribute(const std::string& name, double value);
  template <std::integral Integer>
  void attribute(const std::string& name, Integer value) {
    integer_attribute(name, static_cast<std::int64_t>(value));
  }
  void provenance(Provenance provenance);
  void declare(const std::string& name, const TensorType& type);

  /// Writes a whole declared tensor, once, from what the ranks hold of it: `parts` are this rank's. Together
  /// they cover the tensor; where parts overlap they hold the same values, and the ranks that hold the same
  /// take turns in writing it. `data` is free for other use on return.
  void write(const std::string& name, std::span<const TensorPart> parts);
  void write(const std::string& name, const TensorRegion& region, const void* data);  ///< from one part
  void write_nothing(const std::string& name);  ///< this rank holds none of it

  /// Closes, brings the file to disk and gives it its name; when it returns, that holds on all ranks.
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

  /// Reads everything; throws where a checksum does not match, naming the tensor.
  void verify(const BytesRead& read = {}) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace alpa
