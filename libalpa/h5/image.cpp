#include "libalpa/h5/image.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <vector>

#include "libalpa/h5/chunks.h"

namespace alpa {
namespace {

constexpr std::int64_t few_bytes = 4 << 10;  // in the object header; a chunk index alone takes 2 KiB

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_empty(const Shape& extent) { return std::find(extent.begin(), extent.end(), 0) != extent.end(); }

H5List creation_list(hid_t kind) {
  H5List list(checked(H5Pcreate(kind), "making a property list"));
  checked(H5Pset_obj_track_times(list, false), "switching off times");
  return list;
}

H5List chunked_list(const Shape& extent, const Shape& chunk) {
  H5List list = creation_list(H5P_DATASET_CREATE);
  if (is_empty(extent)) return list;
  const std::vector<hsize_t> dims(chunk.begin(), chunk.end());
  checked(H5Pset_chunk(list, static_cast<int>(dims.size()), dims.data()), "choosing chunks");
  checked(H5Pset_fletcher32(list), "choosing checksums");
  return list;
}

H5List compact_list() {
  H5List list = creation_list(H5P_DATASET_CREATE);
  checked(H5Pset_layout(list, H5D_COMPACT), "choosing a layout");
  return list;
}

}  // namespace

H5Image::H5Image(const std::string& name, std::string_view format, std::string_view format_version,
                 MemoryFile::Placement placement)
    : memory_(std::make_unique<MemoryFile>(placement)) {
  prepare_hdf5();
  driver_ = MemoryFile::driver();
  const H5List access = MemoryFile::access(driver_, *memory_);
  // In the format of 1.8 the index of chunks carries no checksum: a flipped bit in an address can turn data
  // into zeros, which fletcher32 finds right.
  checked(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), "choosing a format");
  const H5List creation = creation_list(H5P_FILE_CREATE);
  file_ = H5File(checked(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation, access), "making a file"));
  attribute("/", "format", format);
  attribute("/", "format_version", format_version);
}

void H5Image::group(const std::string& path) {
  assert(path.starts_with('/'));
  const H5List creation = creation_list(H5P_GROUP_CREATE);
  for (std::size_t end = path.find('/', 1); path.size() > 1; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (checked(H5Lexists(file_, part.c_str(), H5P_DEFAULT), "looking for a group") == 0)
      H5Object(
          checked(H5Gcreate2(file_, part.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT), "making a group"));
    if (end == std::string::npos) break;
  }
}

H5Dataset H5Image::create(const std::string& path, hid_t type, const Shape& extent, hid_t creation) {
  group(path.substr(0, std::max<std::size_t>(1, path.rfind('/'))));
  H5Dataset dataset(
      H5Dcreate2(file_, path.c_str(), type, simple_space(extent), H5P_DEFAULT, creation, H5P_DEFAULT));
  if (!dataset.valid())
    throw Error(ErrorKind::run_time, fmt::format("cannot add dataset '{}': {}", path, hdf5_message()));
  return dataset;
}

H5Dataset H5Image::dataset(const std::string& path, hid_t type, const Shape& extent, const void* values) {
  const auto element_bytes = static_cast<std::int64_t>(H5Tget_size(type));
  const bool is_small = !is_empty(extent) && element_count(extent) * element_bytes <= few_bytes;
  const H5List creation =
      is_small ? compact_list() : chunked_list(extent, chunk_shape(extent, element_bytes));
  H5Dataset dataset = create(path, type, extent, creation);
  if (!is_empty(extent))
    checked(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "writing a dataset");
  return dataset;
}

std::vector<std::int64_t> H5Image::planned_dataset(const std::string& path, hid_t type, const Shape& extent,
                                                   const Shape& chunk) {
  const auto element_bytes = static_cast<std::int64_t>(H5Tget_size(type));
  const H5Dataset dataset = create(path, type, extent, chunked_list(extent, chunk));
  const auto bytes = static_cast<std::size_t>(element_count(chunk) * element_bytes + checksum_bytes);
  if (unread_.size() < bytes) unread_.resize(bytes);
  const std::size_t before = memory_->planned().size();
  memory_->plan_data(true);
  for (const Shape& at : chunk_offsets(extent, chunk)) {
    const std::vector<hsize_t> offset(at.begin(), at.end());
    checked(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), bytes, unread_.data()), "placing a chunk");
  }
  memory_->plan_data(false);
  return {memory_->planned().begin() + static_cast<std::ptrdiff_t>(before), memory_->planned().end()};
}

void H5Image::strings(const std::string& path, std::span<const std::string> values) {
  std::size_t longest = 0;
  for (const std::string& value : values) longest = std::max(longest, value.size());
  const std::size_t size = longest + 1;
  std::string padded(size * values.size(), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) values[i].copy(padded.data() + i * size, longest);
  dataset(path, string_type(longest, std::all_of(values.begin(), values.end(), is_ascii)),
          {static_cast<std::int64_t>(values.size())}, padded.data());
}

void H5Image::commit(const std::string& path, hid_t type) {
  group(path.substr(0, std::max<std::size_t>(1, path.rfind('/'))));
  const H5List creation = creation_list(H5P_DATATYPE_CREATE);
  checked(H5Tcommit2(file_, path.c_str(), type, H5P_DEFAULT, creation, H5P_DEFAULT), "naming a type");
}

H5Object H5Image::open(const std::string& path) const {
  H5Object object(H5Oopen(file_, path.c_str(), H5P_DEFAULT));
  if (!object.valid())
    throw Error(ErrorKind::run_time, fmt::format("no group or dataset '{}' in the file so far", path));
  hdf5_message();
  return object;
}

void H5Image::attribute(const std::string& path, const std::string& name, hid_t type, hid_t space,
                        const void* value) {
  const H5Object object = open(path);
  const H5Attribute attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute.valid())
    throw Error(ErrorKind::run_time,
                fmt::format("cannot add attribute '{}' to '{}': {}", name, path, hdf5_message()));
  checked(H5Awrite(attribute, type, value), "writing an attribute");
}

void H5Image::attribute(const std::string& path, const std::string& name, std::string_view value) {
  const std::string text(value);
  attribute(path, name, string_type(text.size(), is_ascii(text)), simple_space({}), text.c_str());
}

void H5Image::attribute(const std::string& path, const std::string& name, std::int64_t value) {
  attribute(path, name, H5T_STD_I64LE, simple_space({}), &value);
}

void H5Image::attribute(const std::string& path, const std::string& name, double value) {
  attribute(path, name, H5T_IEEE_F64LE, simple_space({}), &value);
}

void H5Image::provenance(const Provenance& provenance) {
  group("/provenance");
  const std::pair<const char*, const std::string*> fields[] = {
      {"command", &provenance.command},  {"software", &provenance.software}, {"job_id", &provenance.job_id},
      {"date", &provenance.date},        {"host", &provenance.host},         {"user", &provenance.user},
      {"settings", &provenance.settings}};
  for (const auto& [name, value] : fields) attribute("/provenance", name, std::string_view(*value));
}

void H5Image::write_to(AtomicFile& file) {
  // Not a flush: as long as it is open for writing, the file says so.
  if (!file_.reset()) throw Error(ErrorKind::run_time, "HDF5 failed completing a file: " + hdf5_message());
  file.resize(memory_->bytes());
  memory_->for_each_page([&](std::int64_t offset, std::string_view bytes) { file.write_at(offset, bytes); });
}

}  // namespace alpa
