#pragma once
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// Writes a column file: an HDF5 file of groups, one dataset per column, and attributes; no compound types,
/// so that h5ls, h5dump and h5diff show everything. The file is built in memory and published atomically.
///
///     H5Writer file("profile.h5", "alpa-profile", "1.0");
///     file.column("/links/bytes", bytes, "byte");
///     file.scale("/links/bytes");
///     file.array("/links/seconds", seconds, {links, sizes}, "s");
///     file.attach_scale("/links/seconds", 1, "/links/bytes");
///     file.attribute("/links", "transport", "shared memory");
///     file.provenance(provenance_here(command_line, "alpa-profile 0.1.0", job_id));
///     file.publish();
///
/// Paths start with '/'; missing groups on the way are made. Columns and arrays carry their `units` ("1"
/// where there is none) and are checksummed. The same calls give the same bytes, /provenance apart. One
/// thread of a process uses HDF5. Strings hold no NUL character. Throws Error(input) where the folder cannot
/// be written, Error(run_time) where the disk is full.
class H5Writer {
 public:
  /// `format` and `format_version` ("MAJOR.MINOR") become attributes of the root. Creates the temporary file
  /// at once, so that an unwritable folder is noticed before the work.
  H5Writer(std::filesystem::path path, std::string_view format, std::string_view format_version);

  /// Without publish() before, nothing is left behind.
  ~H5Writer();
  H5Writer(const H5Writer&) = delete;
  H5Writer& operator=(const H5Writer&) = delete;

  /// An empty group; those of columns need no call.
  void group(const std::string& path);

  void column(const std::string& path, std::span<const double> values, const std::string& units);
  void column(const std::string& path, std::span<const std::int64_t> values, const std::string& units);
  void column(const std::string& path, std::span<const std::int32_t> values, const std::string& units);
  void column(const std::string& path, std::span<const std::string> values);

  /// An array of any rank >= 1 in row-major order; values.size() is the product of `shape`.
  void array(const std::string& path, std::span<const double> values, const Shape& shape,
             const std::string& units);
  void array(const std::string& path, std::span<const std::int64_t> values, const Shape& shape,
             const std::string& units);
  void array(const std::string& path, std::span<const std::int32_t> values, const Shape& shape,
             const std::string& units);

  /// A column of kinds: element i is called names[indices[i]]. Names are distinct.
  void enum_column(const std::string& path, std::span<const std::int32_t> indices,
                   const std::vector<std::string>& names);

  /// A text of any length, e.g. a model's TOML.
  void text(const std::string& path, std::string_view text);

  /// An attribute of a group or dataset that exists already ("/" is the root). Units belong in the name.
  void attribute(const std::string& path, const std::string& name, std::string_view value);
  void attribute(const std::string& path, const std::string& name, double value);
  template <std::integral Integer>
  void attribute(const std::string& path, const std::string& name, Integer value) {
    integer_attribute(path, name, static_cast<std::int64_t>(value));
  }

  /// Marks a column as an HDF5 dimension scale: the positions along an axis of other datasets.
  void scale(const std::string& path);

  /// Says that `scale_path` holds the positions along dimension `dimension` of the dataset at `path`.
  void attach_scale(const std::string& path, int dimension, const std::string& scale_path);

  /// Written by publish().
  void provenance(Provenance provenance);

  /// Closes, brings the file to disk and gives it its name. Nothing may follow.
  void publish();

 private:
  void integer_attribute(const std::string& path, const std::string& name, std::int64_t value);

  struct Open;
  std::unique_ptr<Open> open_;
};

/// Reads a column file that anybody may have made. Before anything is read the whole file is looked through:
/// only groups, datasets and types this suite writes, reached by one hard link each; no external storage,
/// virtual datasets, foreign filters, or datasets that claim more bytes than the file can hold.
///
/// Every failure is an Error(input) that names file and dataset, says what was expected, and what to try.
class H5Reader {
 public:
  /// Refuses a file whose format differs, or whose major version is newer than that of `supported_version`
  /// ("MAJOR.MINOR"). `max_dataset_bytes` bounds what one dataset may claim.
  H5Reader(const std::filesystem::path& path, std::string_view format, std::string_view supported_version,
           std::int64_t max_dataset_bytes = std::int64_t{1} << 30);
  ~H5Reader();
  H5Reader(H5Reader&&) noexcept;
  H5Reader& operator=(H5Reader&&) noexcept;

  const std::string& format_version() const;  ///< as in the file

  bool has(const std::string& path) const;
  std::vector<std::string> children(
      const std::string& group) const;  ///< names in a group, sorted; numbers by value
  Shape extent(const std::string& path) const;

  /// The elements of a dataset in row-major order. `expected` is its extent, {} for any, -1 for a free
  /// dimension: doubles("/links/seconds", {links, -1}).
  std::vector<double> doubles(const std::string& path, const Shape& expected = {}) const;
  std::vector<std::int64_t> int64s(const std::string& path, const Shape& expected = {}) const;
  std::vector<std::string> strings(const std::string& path,
                                   const Shape& expected = {}) const;  ///< without control characters
  std::vector<std::string> enum_names(const std::string& path,
                                      const Shape& expected = {}) const;  ///< per element
  std::string text(const std::string& path) const;

  bool has_attribute(const std::string& path, const std::string& name) const;
  std::string text_attribute(const std::string& path, const std::string& name) const;  ///< likewise
  std::int64_t int64_attribute(const std::string& path, const std::string& name) const;
  double double_attribute(const std::string& path, const std::string& name) const;

  /// Reads everything; throws where a checksum does not match.
  void verify() const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace alpa
