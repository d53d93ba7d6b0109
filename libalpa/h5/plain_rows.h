#pragma once
// Internal to this module.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/h5/descriptor.h"
#include "libalpa/h5/handle.h"

namespace alpa {

/// Rows of a dataset that lie in its file as they are: where they do is looked up once, and then they are
/// read without HDF5, which one thread alone may call.
class PlainRows {
 public:
  /// nullopt where HDF5 has to unpack or convert them: chunks that are compressed, that cut rows or of
  /// which there are more than 4,096, numbers in another order of bytes, files behind a user block. Checksums
  /// (fletcher32) are no hindrance.
  static std::optional<PlainRows> find(hid_t dataset, const Shape& extent, const std::filesystem::path& file);

  /// Rows [first, first + count) as float, or integers as std::int32_t, std::int64_t or std::uint8_t; those
  /// that follow each other in the file with one read, or as many as the memory for them makes necessary. A
  /// chunk is held against its checksum when something of it is read for the first time. Returns "", or what
  /// is wrong. One caller at a time.
  template <class Wanted>
  std::string read(std::int64_t first, std::int64_t count, Wanted* into);

  std::int64_t held_bytes() const;

 private:
  enum class Stored { u8, i8, u16, i16, u32, i32, u64, i64, f16, f32, f64 };
  static std::optional<Stored> stored_type(hid_t type);
  static std::int64_t bytes_of(Stored);

  PlainRows() = default;
  bool find_chunks(hid_t dataset, hid_t creation, const Shape& extent);
  std::string check_chunk(std::size_t chunk);
  std::string pread_all(std::int64_t offset, std::byte* into, std::int64_t count) const;
  template <class Take>
  std::string each_piece(std::int64_t first, std::int64_t count, Take take);

  Descriptor file_;
  Stored stored_ = Stored::u8;
  std::int64_t row_bytes_ = 0;
  std::int64_t chunk_rows_ = 0;             ///< all, where there are no chunks
  std::vector<std::int64_t> chunk_begins_;  ///< in the file
  bool has_checksums_ = false;              ///< behind each chunk
  std::vector<bool> is_checked_;            ///< [chunk], by these; a chunk without has nothing to check
  std::vector<std::byte> piece_;            ///< what was read last
};

}  // namespace alpa
