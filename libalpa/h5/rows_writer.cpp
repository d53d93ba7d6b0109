#include "libalpa/h5/rows_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/chunks.h"
#include "libalpa/h5/image.h"

namespace alpa {
namespace {

constexpr std::int64_t usual_chunk_bytes = 64 << 10, most_row_bytes = 1 << 30;

H5Type stored_type(RowsType type) {
  switch (type) {
    case RowsType::u8:
      return H5Type(H5Tcopy(H5T_STD_U8LE));
    case RowsType::u16:
      return H5Type(H5Tcopy(H5T_STD_U16LE));
    case RowsType::i32:
      return H5Type(H5Tcopy(H5T_STD_I32LE));
    case RowsType::i64:
      return H5Type(H5Tcopy(H5T_STD_I64LE));
    case RowsType::f32:
      return H5Type(H5Tcopy(H5T_IEEE_F32LE));
  }
  return {};
}

// One dataset on its way into the file.
struct RowStream {
  std::int64_t row_bytes, chunk_bytes;
  std::vector<std::int64_t> places;  // of chunks in the file
  std::size_t chunks_written = 0;
  std::string pending;  // of the next chunk
};

}  // namespace

std::int64_t rows_type_bytes(RowsType type) {
  switch (type) {
    case RowsType::u8:
      return 1;
    case RowsType::u16:
      return 2;
    case RowsType::i32:
    case RowsType::f32:
      return 4;
    case RowsType::i64:
      return 8;
  }
  return 0;
}

struct H5RowsWriter::Open {
  Open(std::filesystem::path path, std::string_view format, std::string_view format_version)
      : file(std::move(path)),
        image(std::in_place, file.temporary_path().string(), format, format_version,
              MemoryFile::Placement::dense) {}

  AtomicFile file;
  std::optional<H5Image> image;  // until it is laid out
  std::vector<RowStream> streams;

  void lay_out() {
    if (!image) return;
    image->write_to(file);
    image.reset();
  }

  void write_chunk(RowStream& stream) {
    stream.pending.resize(static_cast<std::size_t>(stream.chunk_bytes), '\0');  // past the last row
    const std::uint32_t checksum = fletcher32(stream.pending);
    for (int i = 0; i < checksum_bytes; ++i) stream.pending.push_back(static_cast<char>(checksum >> (8 * i)));
    file.write_at(stream.places[stream.chunks_written++], stream.pending);
    stream.pending.clear();
  }
};

H5RowsWriter::H5RowsWriter(std::filesystem::path path, std::string_view format,
                           std::string_view format_version)
    : open_(std::make_unique<Open>(std::move(path), format, format_version)) {}

H5RowsWriter::~H5RowsWriter() = default;

int H5RowsWriter::declare(const std::string& path, RowsType type, const Shape& extent) {
  assert(open_->image && !extent.empty() && element_count(extent) > 0);
  const std::int64_t row_bytes = element_count(extent) / extent[0] * rows_type_bytes(type);
  if (row_bytes > most_row_bytes)
    throw Error(ErrorKind::input,
                fmt::format("a row of '{}' has {} bytes, but 1 GiB is the most", path, row_bytes),
                "cut the samples into smaller ones");
  Shape chunk = extent;
  const std::int64_t most = std::max<std::int64_t>(usual_chunk_bytes / row_bytes, 1);
  const std::int64_t pieces = (extent[0] + most - 1) / most;  // of even length
  chunk[0] = (extent[0] + pieces - 1) / pieces;
  RowStream stream{row_bytes,
                   chunk[0] * row_bytes,
                   open_->image->planned_dataset(path, stored_type(type), extent, chunk),
                   0,
                   {}};
  open_->image->attribute(path, "units", std::string_view("1"));
  open_->streams.push_back(std::move(stream));
  return static_cast<int>(open_->streams.size()) - 1;
}

void H5RowsWriter::strings(const std::string& path, std::span<const std::string> values) {
  open_->image->strings(path, values);
}

void H5RowsWriter::column(const std::string& path, std::span<const std::int64_t> values) {
  open_->image->dataset(path, H5T_STD_I64LE, {std::ssize(values)}, values.data());
  open_->image->attribute(path, "units", std::string_view("1"));
}

void H5RowsWriter::attribute(const std::string& path, const std::string& name, std::int64_t value) {
  open_->image->attribute(path, name, value);
}

void H5RowsWriter::attribute(const std::string& path, const std::string& name, double value) {
  open_->image->attribute(path, name, value);
}

void H5RowsWriter::attribute(const std::string& path, const std::string& name, std::string_view value) {
  open_->image->attribute(path, name, value);
}

void H5RowsWriter::provenance(const Provenance& provenance) { open_->image->provenance(provenance); }

void H5RowsWriter::append(int dataset, std::int64_t count, const void* rows) {
  open_->lay_out();
  RowStream& stream = open_->streams[dataset];
  std::string_view left(static_cast<const char*>(rows), static_cast<std::size_t>(count * stream.row_bytes));
  while (!left.empty()) {
    assert(stream.chunks_written < stream.places.size());
    const auto room = static_cast<std::size_t>(stream.chunk_bytes) - stream.pending.size();
    stream.pending.append(left.substr(0, room));
    left.remove_prefix(std::min(room, left.size()));
    if (static_cast<std::int64_t>(stream.pending.size()) == stream.chunk_bytes) open_->write_chunk(stream);
  }
}

void H5RowsWriter::publish() {
  open_->lay_out();
  for (RowStream& stream : open_->streams) {
    if (!stream.pending.empty()) open_->write_chunk(stream);
    assert(stream.chunks_written == stream.places.size());
  }
  open_->file.publish();
  open_.reset();
}

}  // namespace alpa
