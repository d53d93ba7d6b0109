#include "libalpa/h5/image.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <vector>

namespace alpa {
namespace {

constexpr std::int64_t most_chunk_bytes = 4 << 20;
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

H5List dataset_list(const Shape& extent, std::int64_t element_bytes, bool has_values) {
  H5List list = creation_list(H5P_DATASET_CREATE);
  if (is_empty(extent)) return list;
  if (has_values && element_count(extent) * element_bytes <= few_bytes) {
    checked(H5Pset_layout(list, H5D_COMPACT), "choosing a layout");
    return list;
  }
  const Shape chunk = chunk_shape(extent, element_bytes);
  const std::vector<hsize_t> dims(chunk.begin(), chunk.end());
  checked(H5Pset_chunk(list, static_cast<int>(dims.size()), dims.data()), "choosing chunks");
  checked(H5Pset_fletcher32(list), "choosing checksums");
  return list;
}

}  // namespace

Shape chunk_shape(const Shape& extent, std::int64_t element_bytes) {
  Shape chunk(extent.size(), 1);
  std::int64_t bytes = element_bytes;
  for (std::size_t i = extent.size(); i-- > 0;) {
    const std::int64_t most = std::max<std::int64_t>(1, most_chunk_bytes / bytes);
    const std::int64_t pieces = (extent[i] + most - 1) / most;
    chunk[i] = (extent[i] + pieces - 1) / pieces;
    bytes *= chunk[i];
    if (chunk[i] < extent[i]) break;
  }
  return chunk;
}

std::int64_t stored_bytes(const Shape& extent, std::int64_t element_bytes) {
  if (is_empty(extent)) return 0;
  constexpr std::int64_t checksum_bytes = 4;
  const Shape chunk = chunk_shape(extent, element_bytes);
  std::int64_t chunks = 1;
  for (std::size_t i = 0; i < extent.size(); ++i) chunks *= (extent[i] + chunk[i] - 1) / chunk[i];
  return chunks * (element_count(chunk) * element_bytes + checksum_bytes);
}

H5Image::H5Image(const std::string& name, std::string_view format, std::string_view format_version) {
  prepare_hdf5();
  H5List access(checked(H5Pcreate(H5P_FILE_ACCESS), "making a property list"));
  checked(H5Pset_fapl_core(access, 1 << 20, false), "choosing memory");
  // 1.8 and later read it, and metadata carries checksums.
  checked(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110), "choosing a format");
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

H5Dataset H5Image::dataset(const std::string& path, hid_t type, const Shape& extent, const void* values) {
  group(path.substr(0, std::max<std::size_t>(1, path.rfind('/'))));
  const auto element_bytes = static_cast<std::int64_t>(H5Tget_size(type));
  const H5List creation = dataset_list(extent, element_bytes, values != nullptr);
  const H5Space space = simple_space(extent);
  H5Dataset dataset(H5Dcreate2(file_, path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  if (!dataset.valid())
    throw Error(ErrorKind::run_time, fmt::format("cannot add dataset '{}': {}", path, hdf5_message()));
  if (values && !is_empty(extent))
    checked(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "writing a dataset");
  return dataset;
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
  const std::string text = value.empty() ? std::string(1, '\0') : std::string(value);
  attribute(path, name, string_type(text.size(), is_ascii(text)), simple_space({}), text.data());
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
      {"command", &provenance.command}, {"software", &provenance.software}, {"job_id", &provenance.job_id},
      {"date", &provenance.date},       {"host", &provenance.host},         {"user", &provenance.user}};
  for (const auto& [name, value] : fields) attribute("/provenance", name, std::string_view(*value));
}

std::string H5Image::bytes() const {
  checked(H5Fflush(file_, H5F_SCOPE_LOCAL), "completing a file");
  const auto size = checked(H5Fget_file_image(file_, nullptr, 0), "completing a file");
  // The copy that H5Fget_file_image would make has flags of the superblock changed but not its checksum; the
  // handle of the memory driver is the address of the true bytes.
  void* handle = nullptr;
  checked(H5Fget_vfd_handle(file_, H5P_DEFAULT, &handle), "completing a file");
  return std::string(*static_cast<const char**>(handle), static_cast<std::size_t>(size));
}

}  // namespace alpa
