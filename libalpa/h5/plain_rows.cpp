#include "libalpa/h5/plain_rows.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "libalpa/base/float_types.h"
#include "libalpa/h5/chunks.h"

namespace alpa {
namespace {

constexpr std::int64_t kPieceBytes = 256 << 10;  ///< read at once, unless a row is longer

/// A number as HDF5 would give it: integers that do not fit become the nearest that does.
template <class Wanted, class Number>
Wanted number_as(Number number) {
  if constexpr (std::is_same_v<Number, Float16>)
    return number_as<Wanted>(to_float(number));
  else if constexpr (std::is_integral_v<Wanted> && std::is_integral_v<Number>)
    return static_cast<Wanted>(
        std::cmp_less(number, std::numeric_limits<Wanted>::min())      ? std::numeric_limits<Wanted>::min()
        : std::cmp_greater(number, std::numeric_limits<Wanted>::max()) ? std::numeric_limits<Wanted>::max()
                                                                       : static_cast<Wanted>(number));
  else
    return static_cast<Wanted>(number);
}

template <class Number, class Wanted>
void convert(const std::byte* from, std::int64_t count, Wanted* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    Number number;
    std::memcpy(&number, from + i * static_cast<std::int64_t>(sizeof number), sizeof number);
    to[i] = number_as<Wanted>(number);
  }
}

bool has_user_block(hid_t dataset) {
  const H5File file(checked(H5Iget_file_id(dataset), "looking at a dataset"));
  const H5List creation(checked(H5Fget_create_plist(file), "looking at a file"));
  hsize_t bytes = 0;
  checked(H5Pget_userblock(creation, &bytes), "looking at a file");
  return bytes > 0;
}

/// Whether chunks have no filter but checksums, and whether they have these; nullopt where others.
std::optional<bool> checksums_alone(hid_t creation) {
  const int filters = checked(H5Pget_nfilters(creation), "looking at filters");
  if (filters == 0) return false;
  unsigned flags = 0, settings = 0;
  std::size_t values = 0;
  const H5Z_filter_t filter = checked(
      H5Pget_filter2(creation, 0, &flags, &values, nullptr, 0, nullptr, &settings), "looking at filters");
  return filters == 1 && filter == H5Z_FILTER_FLETCHER32 ? std::optional(true) : std::nullopt;
}

}  // namespace

std::int64_t PlainRows::bytes_of(Stored stored) {
  switch (stored) {
    case Stored::u8:
    case Stored::i8:
      return 1;
    case Stored::u16:
    case Stored::i16:
    case Stored::f16:
      return 2;
    case Stored::u32:
    case Stored::i32:
    case Stored::f32:
      return 4;
    case Stored::u64:
    case Stored::i64:
    case Stored::f64:
      return 8;
  }
  return 0;
}

std::optional<PlainRows::Stored> PlainRows::stored_type(hid_t type) {
  const std::pair<hid_t, Stored> known[] = {{H5T_STD_U8LE, Stored::u8},    {H5T_STD_I8LE, Stored::i8},
                                            {H5T_STD_U16LE, Stored::u16},  {H5T_STD_I16LE, Stored::i16},
                                            {H5T_STD_U32LE, Stored::u32},  {H5T_STD_I32LE, Stored::i32},
                                            {H5T_STD_U64LE, Stored::u64},  {H5T_STD_I64LE, Stored::i64},
                                            {H5T_IEEE_F32LE, Stored::f32}, {H5T_IEEE_F64LE, Stored::f64}};
  for (const auto& [of_file, stored] : known)
    if (H5Tequal(type, of_file) > 0) return stored;
  if (H5Tequal(type, float16_type()) > 0) return Stored::f16;
  return std::nullopt;
}

std::optional<PlainRows> PlainRows::find(hid_t dataset, const Shape& extent,
                                         const std::filesystem::path& file) {
  const H5Type type(checked(H5Dget_type(dataset), "asking for a type"));
  const std::optional<Stored> stored = stored_type(type);
  if (!stored || element_count(extent) == 0 || has_user_block(dataset)) return std::nullopt;
  PlainRows rows;
  rows.stored_ = *stored;
  rows.row_bytes_ = element_count(extent) / extent[0] * bytes_of(*stored);
  const H5List creation(checked(H5Dget_create_plist(dataset), "looking at a dataset"));
  switch (H5Pget_layout(creation)) {
    case H5D_CONTIGUOUS: {
      const haddr_t begin = H5Dget_offset(dataset);
      if (begin == HADDR_UNDEF ||
          H5Dget_storage_size(dataset) < static_cast<hsize_t>(extent[0] * rows.row_bytes_))
        return std::nullopt;
      rows.chunk_rows_ = extent[0];
      rows.chunk_begins_ = {static_cast<std::int64_t>(begin)};
      break;
    }
    case H5D_CHUNKED:
      if (!rows.find_chunks(dataset, creation, extent)) return std::nullopt;
      break;
    default:
      return std::nullopt;
  }
  rows.is_checked_.resize(rows.chunk_begins_.size(), !rows.has_checksums_);
  rows.piece_.resize(static_cast<std::size_t>(
      std::max({kPieceBytes, rows.row_bytes_,
                rows.has_checksums_ ? rows.chunk_rows_ * rows.row_bytes_ + checksum_bytes : 0})));
  rows.file_ = Descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (rows.file_ < 0) throw file_error(ErrorKind::input, "read", file, errno);
  return rows;
}

// HDF5 1.10 looks for each chunk from the first on, so that all take a time that grows with their square.
constexpr std::int64_t kMostChunks = 4096;

bool PlainRows::find_chunks(hid_t dataset, hid_t creation, const Shape& extent) {
  const std::optional<bool> checksums = checksums_alone(creation);
  hsize_t dimensions[H5S_MAX_RANK] = {};
  checked(H5Pget_chunk(creation, H5S_MAX_RANK, dimensions), "looking at chunks");
  const Shape chunk(dimensions, dimensions + extent.size());
  if (!checksums || !std::equal(chunk.begin() + 1, chunk.end(), extent.begin() + 1)) return false;
  if (chunk_count(extent, chunk) > kMostChunks) return false;
  has_checksums_ = *checksums;
  chunk_rows_ = chunk[0];
  const auto bytes = static_cast<hsize_t>(chunk_rows_ * row_bytes_ + (has_checksums_ ? checksum_bytes : 0));
  std::vector<hsize_t> offset(extent.size(), 0);
  chunk_begins_.reserve(static_cast<std::size_t>(chunk_count(extent, chunk)));
  for (std::int64_t row = 0; row < extent[0]; row += chunk_rows_) {
    offset[0] = static_cast<hsize_t>(row);
    unsigned left_out = 0;  // filters
    haddr_t begin = HADDR_UNDEF;
    hsize_t stored = 0;
    if (H5Dget_chunk_info_by_coord(dataset, offset.data(), &left_out, &begin, &stored) < 0) {
      hdf5_message();
      return false;
    }
    if (left_out != 0 || begin == HADDR_UNDEF || stored != bytes) return false;
    chunk_begins_.push_back(static_cast<std::int64_t>(begin));
  }
  return true;
}

std::int64_t PlainRows::held_bytes() const {
  return std::ssize(piece_) + std::ssize(is_checked_) / 8 +
         std::ssize(chunk_begins_) * static_cast<std::int64_t>(sizeof chunk_begins_[0]);
}

std::string PlainRows::pread_all(std::int64_t offset, std::byte* into, std::int64_t count) const {
  while (count > 0) {
    const ssize_t got = pread(file_, into, static_cast<std::size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::strerror(errno);
    if (got == 0) return "the file is shorter than when it was opened";
    into += got;
    offset += got;
    count -= got;
  }
  return {};
}

/// Reads a whole chunk to see whether it is as it was written.
std::string PlainRows::check_chunk(std::size_t chunk) {
  const std::int64_t bytes = chunk_rows_ * row_bytes_;
  const std::string problem = pread_all(chunk_begins_[chunk], piece_.data(), bytes + checksum_bytes);
  if (!problem.empty()) return problem;
  std::uint32_t stored = 0;
  std::memcpy(&stored, piece_.data() + bytes, checksum_bytes);
  const auto* const begin = reinterpret_cast<const char*>(piece_.data());
  if (stored != fletcher32({begin, static_cast<std::size_t>(bytes)})) return "its checksum does not match";
  is_checked_[chunk] = true;
  return {};
}

/// take(bytes, count): the next bytes of these rows, in order.
template <class Take>
std::string PlainRows::each_piece(std::int64_t first, std::int64_t count, Take take) {
  const std::int64_t most = std::max<std::int64_t>(std::ssize(piece_) / row_bytes_, 1);
  while (count > 0) {
    const auto chunk = static_cast<std::size_t>(first / chunk_rows_);
    const std::int64_t row = first % chunk_rows_, rows = std::min({count, chunk_rows_ - row, most});
    std::string problem;
    if (!is_checked_[chunk]) problem = check_chunk(chunk);
    if (problem.empty())
      problem = pread_all(chunk_begins_[chunk] + row * row_bytes_, piece_.data(), rows * row_bytes_);
    if (!problem.empty()) return problem;
    take(piece_.data(), rows * row_bytes_);
    first += rows;
    count -= rows;
  }
  return {};
}

template <class Wanted>
std::string PlainRows::read(std::int64_t first, std::int64_t count, Wanted* into) {
  const auto all_as = [&]<class Number>(Number) {
    return each_piece(first, count, [&](const std::byte* bytes, std::int64_t byte_count) {
      const std::int64_t numbers = byte_count / static_cast<std::int64_t>(sizeof(Number));
      if constexpr (std::is_same_v<Number, Wanted>)
        std::memcpy(into, bytes, static_cast<std::size_t>(byte_count));
      else
        convert<Number>(bytes, numbers, into);
      into += numbers;
    });
  };
  switch (stored_) {
    case Stored::u8:
      return all_as(std::uint8_t{});
    case Stored::i8:
      return all_as(std::int8_t{});
    case Stored::u16:
      return all_as(std::uint16_t{});
    case Stored::i16:
      return all_as(std::int16_t{});
    case Stored::u32:
      return all_as(std::uint32_t{});
    case Stored::i32:
      return all_as(std::int32_t{});
    case Stored::u64:
      return all_as(std::uint64_t{});
    case Stored::i64:
      return all_as(std::int64_t{});
    case Stored::f16:
      return all_as(Float16{});
    case Stored::f32:
      return all_as(float{});
    case Stored::f64:
      return all_as(double{});
  }
  return {};
}

template std::string PlainRows::read(std::int64_t, std::int64_t, std::int32_t*);
template std::string PlainRows::read(std::int64_t, std::int64_t, std::int64_t*);
template std::string PlainRows::read(std::int64_t, std::int64_t, std::uint8_t*);
template std::string PlainRows::read(std::int64_t, std::int64_t, float*);

}  // namespace alpa
