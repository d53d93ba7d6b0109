#include "tests/commands/spoiled_files.h"

#include <hdf5.h>

#include <stdexcept>

#include "tests/h5/damage.h"

namespace alpa {
namespace {

void check(bool well) {
  if (!well) throw std::runtime_error("HDF5 cannot spoil the file");
}

void edit(const std::filesystem::path& path, const std::function<void(hid_t)>& body) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  check(file >= 0);
  body(file);
  check(H5Fclose(file) >= 0);
}

void edit_attribute(const std::filesystem::path& path, const std::string& object, const std::string& name,
                    const std::function<void(hid_t)>& body) {
  edit(path, [&](hid_t file) {
    const hid_t owner = H5Oopen(file, object.c_str(), H5P_DEFAULT);
    const hid_t attribute = H5Aopen(owner, name.c_str(), H5P_DEFAULT);
    check(attribute >= 0);
    body(attribute);
    H5Aclose(attribute);
    H5Oclose(owner);
  });
}

}  // namespace

void cut_in_half(const std::filesystem::path& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}

void flip_bit_in(const std::filesystem::path& path, const std::string& text) {
  const std::size_t at = bytes_of_file(path).find(text);
  check(at != std::string::npos);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(text[0] ^ 1));
}

void set_text_attribute(const std::filesystem::path& path, const std::string& object, const std::string& name,
                        const std::string& value) {
  edit_attribute(path, object, name, [&](hid_t attribute) {
    const hid_t type = H5Aget_type(attribute);
    std::string padded = value;
    padded.resize(H5Tget_size(type));
    check(H5Awrite(attribute, type, padded.data()) >= 0);
    H5Tclose(type);
  });
}

void add_external_link(const std::filesystem::path& path) {
  edit(path, [](hid_t file) {
    check(H5Lcreate_external("/etc/passwd", "/secret", file, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT) >= 0);
  });
}

void set_number(const std::filesystem::path& path, const std::string& name, std::int64_t value) {
  edit(path, [&](hid_t file) {
    const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
    check(dataset >= 0);
    const hid_t whole = H5Dget_space(dataset);
    const hsize_t one = 1;
    const std::vector<hsize_t> first(static_cast<std::size_t>(H5Sget_simple_extent_ndims(whole)), 0),
        ones(first.size(), 1);
    const hid_t memory = H5Screate_simple(1, &one, nullptr);
    check(H5Sselect_hyperslab(whole, H5S_SELECT_SET, first.data(), nullptr, ones.data(), nullptr) >= 0);
    check(H5Dwrite(dataset, H5T_NATIVE_INT64, memory, whole, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory);
    H5Sclose(whole);
    H5Dclose(dataset);
  });
}

void set_number_attribute(const std::filesystem::path& path, const std::string& object,
                          const std::string& name, std::int64_t value) {
  edit_attribute(path, object, name,
                 [&](hid_t attribute) { check(H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0); });
}

std::vector<std::string> integer_datasets(const std::filesystem::path& path) {
  std::vector<std::string> names;
  const auto visit = [](hid_t file, const char* name, const H5O_info_t* about, void* into) -> herr_t {
    if (about->type != H5O_TYPE_DATASET) return 0;
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    const hid_t type = H5Dget_type(dataset);
    if (H5Tget_class(type) == H5T_INTEGER) static_cast<std::vector<std::string>*>(into)->push_back(name);
    H5Tclose(type);
    H5Dclose(dataset);
    return 0;
  };
  edit(path, [&](hid_t file) {
    check(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit, &names, H5O_INFO_BASIC) >= 0);
  });
  return names;
}

}  // namespace alpa
