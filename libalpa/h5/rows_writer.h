#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "libalpa/base/tensor_type.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// How the numbers of a dataset of rows are stored, and given.
enum class RowsType { u8, u16, i32, i64, f32 };

std::int64_t rows_type_bytes(RowsType);

/// Writes an HDF5 file of datasets that are long in their first dimension (H5Rows reads them), some rows at a
/// time and in order, holding no more than a chunk of each. Chunks are some 64 KiB of whole rows, since
/// training reads rows at random, and checksummed.
///
///     H5RowsWriter file("images.h5", "alpa-data", "1.0");
///     const int images = file.declare("/images", RowsType::u8, {60000, 28, 28, 1});
///     file.attribute("/images", "divide", 255.0);
///     for (...) file.append(images, 1, pixels);
///     file.publish();
///
/// The first append() lays the file out and sets its room on disk aside, so nothing may be declared after it.
/// The same calls give the same bytes, /provenance apart. Throws Error(input) where the folder cannot be
/// written or a row is larger than a chunk may be (1 GiB), Error(run_time) where the disk is full.
class H5RowsWriter {
 public:
  H5RowsWriter(std::filesystem::path path, std::string_view format, std::string_view format_version);
  ~H5RowsWriter();  ///< without publish() before, nothing is left behind
  H5RowsWriter(const H5RowsWriter&) = delete;
  H5RowsWriter& operator=(const H5RowsWriter&) = delete;

  /// A dataset with room for extent[0] >= 1 rows; the result names it in append().
  int declare(const std::string& path, RowsType type, const Shape& extent);
  void strings(const std::string& path, std::span<const std::string> values);

  /// A short column, which is kept until the first append().
  void column(const std::string& path, std::span<const std::int64_t> values);

  void attribute(const std::string& path, const std::string& name, std::int64_t value);
  void attribute(const std::string& path, const std::string& name, double value);
  void attribute(const std::string& path, const std::string& name, std::string_view value);
  void provenance(const Provenance& provenance);

  /// The next `count` rows of a dataset.
  void append(int dataset, std::int64_t count, const void* rows);

  /// Closes, brings the file to disk and gives it its name. All rows have been appended.
  void publish();

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace alpa
