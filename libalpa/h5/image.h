#pragma once
// Internal to this module.
#include <string>
#include <string_view>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/handle.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// Extents of the chunks for a dataset of these extents (all > 0): at most 4 MiB, at least 1 MiB where the
/// dataset has as much, evenly divided, whole inner dimensions first. {1000, 1024} of 4 bytes -> {500, 1024}.
Shape chunk_shape(const Shape& extent, std::int64_t element_bytes);

/// Bytes that a checksummed dataset takes in the file, chunk padding and checksums included; bookkeeping not.
std::int64_t stored_bytes(const Shape& extent, std::int64_t element_bytes);

/// An HDF5 file in memory. Nothing in it depends on time or place: object times are off.
class H5Image {
 public:
  /// `name` only tells files apart while they are open.
  H5Image(const std::string& name, std::string_view format, std::string_view format_version);

  /// Makes a group and those on the way to it; an existing one is fine.
  void group(const std::string& path);

  /// Makes a dataset whose damage is noticed on reading: in its (checksummed) header when `values` are few,
  /// else chunked with fletcher32. With `values` null nothing is stored yet, and it is always chunked.
  H5Dataset dataset(const std::string& path, hid_t type, const Shape& extent, const void* values);

  /// Names a type in the file.
  void commit(const std::string& path, hid_t type);

  void attribute(const std::string& path, const std::string& name, std::string_view value);
  void attribute(const std::string& path, const std::string& name, std::int64_t value);
  void attribute(const std::string& path, const std::string& name, double value);
  void attribute(const std::string& path, const std::string& name, hid_t type, hid_t space,
                 const void* value);

  void provenance(const Provenance& provenance);

  H5Object open(const std::string& path) const;
  hid_t file() const { return file_; }

  /// The file as it would lie on disk.
  std::string bytes() const;

 private:
  H5File file_;
};

}  // namespace alpa
