#include <fmt/core.h>

#include <limits>

#include "libalpa/h5/checked_file.h"
#include "libalpa/h5/chunks.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {
namespace {

constexpr std::string_view folder = "/tensors/";

DType dtype_of(const CheckedFile& file, const std::string& path, const H5Entry& entry) {
  if (entry.kind == H5Entry::Kind::bfloat16) return DType::bf16;
  if (entry.kind == H5Entry::Kind::floats && entry.element_bytes == 4) return DType::f32;
  if (entry.kind == H5Entry::Kind::floats && entry.element_bytes == 2) return DType::f16;
  if (entry.kind == H5Entry::Kind::integers && entry.element_bytes == 4) return DType::i32;
  throw file.error(path, "expected elements of type f32, bf16, f16 or i32");
}

std::map<std::string, TensorType> tensors_of(const CheckedFile& file) {
  file.entry("/tensors");
  std::map<std::string, TensorType> tensors;
  for (auto i = file.listing().lower_bound(std::string(folder));
       i != file.listing().end() && i->first.starts_with(folder); ++i) {
    const auto& [path, entry] = *i;
    if (!entry.is_dataset()) throw file.error(path, "expected a tensor, found a group or a type");
    TensorType type{dtype_of(file, path, entry), entry.extent};
    if (entry.extent == Shape{1} && file.has_attribute(path, "rank") &&
        file.int64_attribute(path, "rank") == 0)
      type.shape = {};
    tensors.emplace(path.substr(folder.size()), std::move(type));
  }
  return tensors;
}

H5Space selection(const TensorRegion& region, const Shape& shape) {
  H5Space space = simple_space(stored_extent(shape));
  const auto [offset, count] = stored_region(region);
  const std::vector<hsize_t> first(offset.begin(), offset.end()), size(count.begin(), count.end());
  checked(H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, size.data(), nullptr),
          "selecting a region");
  return space;
}

}  // namespace

struct TensorReader::Open {
  CheckedFile file;
  std::map<std::string, TensorType> tensors;
};

TensorReader::TensorReader(const std::filesystem::path& path, std::string_view format,
                           std::string_view supported_version)
    : open_(new Open{CheckedFile(path, format, supported_version, std::numeric_limits<std::int64_t>::max()),
                     {}}) {
  open_->tensors = tensors_of(open_->file);
}

TensorReader::~TensorReader() = default;
TensorReader::TensorReader(TensorReader&&) noexcept = default;
TensorReader& TensorReader::operator=(TensorReader&&) noexcept = default;

const std::string& TensorReader::format_version() const { return open_->file.format_version(); }
const std::map<std::string, TensorType>& TensorReader::tensors() const { return open_->tensors; }
bool TensorReader::has_attribute(const std::string& name) const {
  return open_->file.has_attribute("/", name);
}
std::string TensorReader::text_attribute(const std::string& name) const {
  return open_->file.text_attribute("/", name);
}
std::int64_t TensorReader::int64_attribute(const std::string& name) const {
  return open_->file.int64_attribute("/", name);
}
double TensorReader::double_attribute(const std::string& name) const {
  return open_->file.double_attribute("/", name);
}

void TensorReader::read(const std::string& name, const TensorRegion& region, void* data) const {
  const std::string path = std::string(folder) + name;
  const auto known = open_->tensors.find(name);
  if (known == open_->tensors.end()) throw open_->file.error(path, "there is no such tensor in the file");
  const std::string fault = region_fault(region, known->second.shape);
  if (!fault.empty()) throw open_->file.error(path, fault, "read a region that the tensor has");
  if (element_count(region.count) == 0) return;
  // Memory has the shape of the region, not of a row of its elements: HDF5 copies boxes of equal shape by
  // rows, others element by element.
  open_->file.read(path, element_type(known->second.dtype), simple_space(stored_region(region).count),
                   selection(region, known->second.shape), data);
}

void TensorReader::read(const std::string& name, const TensorRegion& region, const TakePiece& take) const {
  const auto known = open_->tensors.find(name);
  if (known == open_->tensors.end() || !region_fault(region, known->second.shape).empty())
    return read(name, region, static_cast<void*>(nullptr));  // which says what is wrong
  // By the chunks that such a tensor has where this suite wrote it, so that none is read twice.
  const Shape extent = stored_extent(known->second.shape);
  const std::int64_t element = dtype_bytes(known->second.dtype);
  const Shape chunk = chunk_shape(extent, element);
  std::vector<std::byte> values;
  for (const Shape& offset : chunk_offsets(extent, chunk)) {
    TensorRegion box = intersection(stored_region(region), {offset, chunk});
    const std::int64_t bytes = element_count(box.count) * element;
    if (bytes == 0) continue;
    if (known->second.shape.empty()) box = {};
    values.resize(static_cast<std::size_t>(bytes));
    read(name, box, values.data());
    take(box, values);
  }
}

void TensorReader::read_all(const std::string& name, void* data) const {
  const auto known = open_->tensors.find(name);
  const Shape shape = known == open_->tensors.end() ? Shape{} : known->second.shape;
  read(name, {Shape(shape.size(), 0), shape}, data);
}

void TensorReader::verify(const BytesRead& read) const { open_->file.verify(read); }

}  // namespace alpa
