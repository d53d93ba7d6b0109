#pragma once
// Internal to this module.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/handle.h"

namespace alpa {

/// What stands at a path of a file that was looked through.
struct H5Entry {
  enum class Kind { group, type, floats, bfloat16, integers, enumeration, strings };
  Kind kind = Kind::group;
  Shape extent;                    ///< of datasets
  std::int64_t element_bytes = 0;  ///< of datasets, as stored
  bool is_dataset() const { return kind != Kind::group && kind != Kind::type; }
};

/// Path -> entry, "/" included.
using H5Listing = std::map<std::string, H5Entry>;

/// Looks through a whole file without reading data. Throws Error(input) for anything that our files never
/// hold: links that are not hard, objects with two paths (cycles among them), external or virtual storage,
/// filters other than fletcher32, shuffle and deflate, types other than integers, floats, enumerations and
/// strings (of fixed length in datasets), more than a million objects, groups deeper than 32, datasets of
/// more than `max_dataset_bytes` or than `file_bytes` can hold, or of very many small chunks.
H5Listing preflight(hid_t file, const std::string& file_name, std::int64_t file_bytes,
                    std::int64_t max_dataset_bytes);

/// A file from anybody, opened for reading and looked through, of the right format and version.
class CheckedFile {
 public:
  /// Of any format.
  CheckedFile(const std::filesystem::path& path, std::int64_t max_dataset_bytes);

  CheckedFile(const std::filesystem::path& path, std::string_view format, std::string_view supported_version,
              std::int64_t max_dataset_bytes);

  const std::string& format_version() const { return format_version_; }
  const H5Listing& listing() const { return listing_; }

  /// Error(input) that names the file and the object, "" for the file as a whole; an empty hint becomes a
  /// general one.
  Error error(const std::string& path, const std::string& problem, std::string hint = {}) const;

  /// Throws when there is nothing at `path`, naming what is near; an empty hint becomes a general one.
  const H5Entry& entry(const std::string& path, const std::string& hint = {}) const;

  /// A dataset, opened (with this access property list), with all its chunks present.
  H5Dataset dataset(const std::string& path, hid_t access = H5P_DEFAULT) const;

  /// Reads a dataset, or the part of it that `file_space` selects, after H5Dread's rules.
  void read(const std::string& path, hid_t memory_type, hid_t memory_space, hid_t file_space,
            void* values) const;

  bool has_attribute(const std::string& path, const std::string& name) const;
  std::string text_attribute(const std::string& path, const std::string& name) const;
  std::int64_t int64_attribute(const std::string& path, const std::string& name) const;
  double double_attribute(const std::string& path, const std::string& name) const;

  /// Reads all data, and says how much after each piece; throws where a checksum does not match.
  void verify(const std::function<void(std::int64_t bytes)>& read = {}) const;

 private:
  /// `hint`: what to try where it is no HDF5 file.
  CheckedFile(const std::filesystem::path& path, std::int64_t max_dataset_bytes, const std::string& hint);

  void verify(const std::string& path, const H5Entry& entry,
              const std::function<void(std::int64_t bytes)>& read) const;
  H5Attribute attribute(const std::string& path, const std::string& name, H5T_class_t expected,
                        const char* expected_text) const;

  std::string name_;
  H5File file_;
  H5Listing listing_;
  std::string format_version_;
  mutable std::set<std::string> whole_;  // datasets found to have all their chunks
};

}  // namespace alpa
