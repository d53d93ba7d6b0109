#include "libalpa/h5/rows.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/h5/checked_file.h"
#include "libalpa/h5/plain_rows.h"

namespace alpa {
namespace {

constexpr std::int64_t cache_bytes = 64 << 20;

// Random pieces fall into the same few chunks again; each of them may have to be decompressed.
H5List with_large_cache() {
  constexpr std::size_t slots = 10'007;
  H5List access(checked(H5Pcreate(H5P_DATASET_ACCESS), "making a property list"));
  checked(
      H5Pset_chunk_cache(access, slots, static_cast<std::size_t>(cache_bytes), H5D_CHUNK_CACHE_W0_DEFAULT),
      "sizing a cache");
  return access;
}

// Of the library: chunks that it keeps, and one that it unpacks.
std::int64_t held_by_library(hid_t dataset, const H5Entry& entry) {
  const H5List creation(checked(H5Dget_create_plist(dataset), "looking at a dataset"));
  if (H5Pget_layout(creation) != H5D_CHUNKED) return 0;
  hsize_t chunk[H5S_MAX_RANK] = {};
  checked(H5Pget_chunk(creation, H5S_MAX_RANK, chunk), "looking at chunks");
  const std::int64_t chunk_bytes =
      element_count(Shape(chunk, chunk + entry.extent.size())) * entry.element_bytes;
  return std::min(cache_bytes, element_count(entry.extent) * entry.element_bytes) + 2 * chunk_bytes;
}

}  // namespace

bool has_dataset(const std::filesystem::path& file, const std::string& dataset) {
  const H5Listing listing = CheckedFile(file, std::numeric_limits<std::int64_t>::max()).listing();
  const auto found = listing.find(dataset);
  return found != listing.end() && found->second.is_dataset();
}

struct H5Rows::Open {
  CheckedFile file;
  std::string path, hint;
  H5Entry entry;
  H5Dataset dataset;
  bool is_bytes = false;
  std::optional<PlainRows> plain;
  std::int64_t held_bytes = 0;
};

H5Rows::H5Rows(const std::filesystem::path& file, const std::string& dataset, const std::string& hint)
    : open_(new Open{
          CheckedFile(file, std::numeric_limits<std::int64_t>::max()), dataset, hint, {}, {}, {}, {}, {}}) {
  open_->entry = open_->file.entry(dataset, hint);
  if (!is_integer() && open_->entry.kind != H5Entry::Kind::floats) throw error("expected numbers");
  if (extent().empty()) throw error("expected at least one dimension");
  open_->dataset = open_->file.dataset(dataset, with_large_cache());
  const H5Type type(checked(H5Dget_type(open_->dataset), "asking for a type"));
  open_->is_bytes = is_integer() && H5Tget_size(type) == 1 && H5Tget_sign(type) == H5T_SGN_NONE;
  open_->plain = PlainRows::find(open_->dataset, extent(), file);
  open_->held_bytes =
      open_->plain ? open_->plain->held_bytes() : held_by_library(open_->dataset, open_->entry);
}

H5Rows::~H5Rows() = default;
H5Rows::H5Rows(H5Rows&&) noexcept = default;
H5Rows& H5Rows::operator=(H5Rows&&) noexcept = default;

const Shape& H5Rows::extent() const { return open_->entry.extent; }
bool H5Rows::is_integer() const { return open_->entry.kind == H5Entry::Kind::integers; }
bool H5Rows::is_bytes() const { return open_->is_bytes; }

std::optional<std::int64_t> H5Rows::integer_attribute(const std::string& name) const {
  if (!open_->file.has_attribute(open_->path, name)) return std::nullopt;
  return open_->file.int64_attribute(open_->path, name);
}

Error H5Rows::error(const std::string& problem) const {
  return open_->file.error(open_->path, problem, open_->hint);
}

bool H5Rows::is_plain() const { return open_->plain.has_value(); }

std::int64_t H5Rows::held_bytes() const { return open_->held_bytes; }

void H5Rows::read(std::int64_t first, std::int64_t count, std::int32_t* into) const {
  assert(is_integer());
  read_as(H5T_NATIVE_INT32, first, count, into);
}

void H5Rows::read(std::int64_t first, std::int64_t count, std::int64_t* into) const {
  assert(is_integer());
  read_as(H5T_NATIVE_INT64, first, count, into);
}

void H5Rows::read(std::int64_t first, std::int64_t count, float* into) const {
  read_as(H5T_NATIVE_FLOAT, first, count, into);
}

void H5Rows::read(std::int64_t first, std::int64_t count, std::uint8_t* into) const {
  assert(is_integer());
  read_as(H5T_NATIVE_UINT8, first, count, into);
}

template <class Number>
void H5Rows::read_as(std::int64_t memory_type, std::int64_t first, std::int64_t count, Number* into) const {
  assert(first >= 0 && count >= 0 && first + count <= extent()[0]);
  if (count == 0) return;
  std::string problem;
  if (open_->plain) {
    problem = open_->plain->read(first, count, into);
  } else {
    std::vector<hsize_t> offset(extent().size(), 0), piece(extent().begin(), extent().end());
    offset[0] = static_cast<hsize_t>(first);
    piece[0] = static_cast<hsize_t>(count);
    const H5Space in_file = simple_space(extent());
    checked(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, offset.data(), nullptr, piece.data(), nullptr),
            "selecting a region");
    const H5Space in_memory = simple_space(Shape(piece.begin(), piece.end()));
    if (H5Dread(open_->dataset, memory_type, in_memory, in_file, H5P_DEFAULT, into) < 0)
      problem = hdf5_message();
  }
  if (!problem.empty())
    throw open_->file.error(open_->path, "cannot be read: " + problem,
                            "the file is damaged: make it again, or take another copy");
}

}  // namespace alpa
