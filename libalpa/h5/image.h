#pragma once
// Internal to this module.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/handle.h"
#include "libalpa/h5/memory_file.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// An HDF5 file in memory. Nothing in it depends on time or place: object times are off.
class H5Image {
 public:
  /// `name` only distinguishes files while they are open.
  H5Image(const std::string& name, std::string_view format, std::string_view format_version,
          MemoryFile::Placement placement);

  /// Makes a group and those on the way to it; an existing one is fine.
  void group(const std::string& path);

  /// Makes a dataset whose damage is noticed on reading: in its (checksummed) header when `values` are few,
  /// else chunked with fletcher32.
  H5Dataset dataset(const std::string& path, hid_t type, const Shape& extent, const void* values);

  /// Makes a dataset, chunked with fletcher32, whose values are to be written into the finished file: the
  /// offset in the file of each chunk, in row-major order.
  std::vector<std::int64_t> planned_dataset(const std::string& path, hid_t type, const Shape& extent,
                                            const Shape& chunk);

  /// Makes a column of strings, each padded to the longest. They hold no NUL character.
  void strings(const std::string& path, std::span<const std::string> values);

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

  /// Closes the file and puts it on disk, in its full length; planned values are left out.
  void write_to(AtomicFile& file);

 private:
  H5Dataset create(const std::string& path, hid_t type, const Shape& extent, hid_t creation);

  std::unique_ptr<MemoryFile> memory_;
  std::vector<char> unread_;  ///< stands for the values of a planned chunk
  H5Driver driver_;
  H5File file_;
};

}  // namespace alpa
