#include "libalpa/h5/integer_row.h"

#include <fmt/core.h>

#include <cassert>
#include <limits>

#include "libalpa/h5/checked_file.h"

namespace alpa {
namespace {

// Random pieces fall into the same few chunks again; each of them may have to be decompressed.
H5List with_large_cache() {
  constexpr std::size_t slots = 10'007, cache_bytes = 64 << 20;
  H5List access(checked(H5Pcreate(H5P_DATASET_ACCESS), "making a property list"));
  checked(H5Pset_chunk_cache(access, slots, cache_bytes, H5D_CHUNK_CACHE_W0_DEFAULT), "sizing a cache");
  return access;
}

}  // namespace

struct H5IntegerRow::Open {
  CheckedFile file;
  std::string path;
  std::int64_t size = 0;
  H5Dataset dataset;
};

H5IntegerRow::H5IntegerRow(const std::filesystem::path& file, const std::string& dataset)
    : open_(new Open{CheckedFile(file, std::numeric_limits<std::int64_t>::max()), dataset, 0, {}}) {
  const std::string hint =
      fmt::format("store the values as '{}', a one-dimensional dataset of an integer type", dataset);
  const H5Entry& entry = open_->file.entry(dataset, hint);
  if (entry.kind != H5Entry::Kind::integers || entry.extent.size() != 1)
    throw open_->file.error(dataset, "expected one dimension of integers", hint);
  open_->size = entry.extent[0];
  open_->dataset = open_->file.dataset(dataset, with_large_cache());
}

H5IntegerRow::~H5IntegerRow() = default;
H5IntegerRow::H5IntegerRow(H5IntegerRow&&) noexcept = default;
H5IntegerRow& H5IntegerRow::operator=(H5IntegerRow&&) noexcept = default;

std::int64_t H5IntegerRow::size() const { return open_->size; }

void H5IntegerRow::read(std::int64_t first, std::span<std::int32_t> into) const {
  assert(first >= 0 && first + static_cast<std::int64_t>(into.size()) <= open_->size);
  if (into.empty()) return;
  const auto elements = static_cast<std::int64_t>(into.size());
  const H5Space in_file = simple_space({open_->size});
  const hsize_t offset = static_cast<hsize_t>(first), count = into.size();
  checked(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &offset, nullptr, &count, nullptr),
          "selecting a region");
  if (H5Dread(open_->dataset, H5T_NATIVE_INT32, simple_space({elements}), in_file, H5P_DEFAULT, into.data()) <
      0)
    throw open_->file.error(open_->path, "cannot be read: " + hdf5_message(),
                            "the file is damaged: make it again, or take another copy");
}

}  // namespace alpa
