#include "libalpa/h5/checked_file.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "libalpa/base/unreadable_file.h"
#include "libalpa/h5/chunks.h"
#include "libalpa/h5/global_heap.h"

namespace alpa {
namespace {

constexpr const char* make_again = "the file is damaged: make it again, or take another copy";

std::int64_t size_of_regular_file(const std::string& name) {
  struct stat about {};
  if (stat(name.c_str(), &about) != 0 || access(name.c_str(), R_OK) != 0)
    throw unreadable_file(name, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) throw unreadable_file(name, "not a regular file");
  return about.st_size;
}

/// What makes files of a format.
std::string maker_of(std::string_view format) {
  constexpr std::pair<std::string_view, std::string_view> makers[] = {
      {"alpa-profile", "alpa-profile MODEL.toml --out PROFILE.h5 makes a profile"},
      {"alpa-plan", "alpa-plan MODEL.toml --out PLAN.h5 makes a plan"},
      {"alpa-checkpoint", "alpa-train saves checkpoints in RUN_DIR/checkpoints"},
      {"alpa-data", "alpa-train convert makes such files"}};
  for (const auto& [made, maker] : makers)
    if (made == format) return std::string(maker);
  return fmt::format("give a file of format '{}'", format);
}

H5File open_file(const std::string& name, const std::string& hint) {
  const H5List access(checked(H5Pcreate(H5P_FILE_ACCESS), "making a property list"));
  // Published files never change, and locking fails or hangs on some network file systems.
  checked(H5Pset_file_locking(access, false, true), "switching off file locks");
  H5File file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access));
  if (file.valid()) return file;
  const std::string message = hdf5_message();
  if (H5Fis_hdf5(name.c_str()) > 0)
    throw Error(ErrorKind::input,
                fmt::format("'{}' is an HDF5 file but truncated or damaged: {}", name, message), make_again);
  throw Error(ErrorKind::input, fmt::format("'{}' is not an HDF5 file", name), hint);
}

// "1.3" -> 1; -1 when malformed.
int major_version(std::string_view version) {
  int numbers[2] = {-1, -1};
  const char* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, numbers[0]);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return -1;
  const auto second = std::from_chars(first.ptr + 1, end, numbers[1]);
  return second.ec == std::errc() && second.ptr == end && numbers[0] >= 0 && numbers[1] >= 0 ? numbers[0]
                                                                                             : -1;
}

std::string until_nul(const char* text, std::size_t bytes) { return std::string(text, strnlen(text, bytes)); }

// Extents of the chunks; where there are none, of pieces of a handy size.
Shape chunk_of(hid_t dataset, const H5Entry& entry) {
  const H5List creation(checked(H5Dget_create_plist(dataset), "looking at a dataset"));
  if (H5Pget_layout(creation) != H5D_CHUNKED) return chunk_shape(entry.extent, entry.element_bytes);
  hsize_t chunk[H5S_MAX_RANK] = {};
  checked(H5Pget_chunk(creation, H5S_MAX_RANK, chunk), "looking at chunks");
  return Shape(chunk, chunk + entry.extent.size());
}

// "" when all data is there, otherwise what is wrong: a chunk that the index has lost would read as zeros.
std::string missing_part(hid_t dataset, const H5Entry& entry) {
  if (element_count(entry.extent) == 0) return {};
  const H5List creation(checked(H5Dget_create_plist(dataset), "looking at a dataset"));
  if (H5Pget_layout(creation) == H5D_CONTIGUOUS) {
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    const bool there = H5Dget_space_status(dataset, &status) >= 0 && status == H5D_SPACE_STATUS_ALLOCATED;
    return there ? "" : "its data is missing";
  }
  if (H5Pget_layout(creation) != H5D_CHUNKED) return {};

  const Shape chunk = chunk_of(dataset, entry);
  const std::int64_t expected = chunk_count(entry.extent, chunk);
  const H5Space space(checked(H5Dget_space(dataset), "looking at a dataset"));
  hsize_t found = 0;
  if (H5Dget_num_chunks(dataset, space, &found) < 0)
    return "its index of chunks cannot be read: " + hdf5_message();
  if (found != static_cast<hsize_t>(expected)) return fmt::format("has {} of {} chunks", found, expected);
  Shape at(entry.extent.size(), 0);
  do {
    // Looks the chunk up as reading does; a walk over the index could find it where a look-up does not.
    const std::vector<hsize_t> offset(at.begin(), at.end());
    hsize_t bytes = 0;
    if (H5Dget_chunk_storage_size(dataset, offset.data(), &bytes) < 0 || bytes == 0) {
      hdf5_message();
      return fmt::format("the chunk at {} is missing", shape_text(at));
    }
  } while (advance_chunk(at, entry.extent, chunk));
  return {};
}

}  // namespace

CheckedFile::CheckedFile(const std::filesystem::path& path, std::int64_t max_dataset_bytes)
    : CheckedFile(path, max_dataset_bytes, "check the path") {}

CheckedFile::CheckedFile(const std::filesystem::path& path, std::int64_t max_dataset_bytes,
                         const std::string& hint)
    : name_(path.string()) {
  const std::int64_t bytes = size_of_regular_file(name_);
  prepare_hdf5();
  file_ = open_file(name_, hint);
  listing_ = preflight(file_, name_, bytes, max_dataset_bytes);
}

CheckedFile::CheckedFile(const std::filesystem::path& path, std::string_view format,
                         std::string_view supported_version, std::int64_t max_dataset_bytes)
    : CheckedFile(path, max_dataset_bytes, maker_of(format)) {
  const std::string found = has_attribute("/", "format") ? text_attribute("/", "format") : "";
  const std::string other_file = maker_of(format);
  if (found.empty())
    throw error("", fmt::format("expected an '{}' file, found an HDF5 file without a format", format),
                other_file);
  if (found != format)
    throw error("", fmt::format("expected an '{}' file, found an '{}' file", format, found), other_file);
  format_version_ = text_attribute("/", "format_version");
  const int major = major_version(format_version_);
  if (major < 0) throw error("", fmt::format("format_version '{}' is not MAJOR.MINOR", format_version_));
  if (major > major_version(supported_version))
    throw error("",
                fmt::format("format {} {} is newer than {}, the newest this program reads", format,
                            format_version_, supported_version),
                "use the version that wrote the file, or make the file again with this one");
}

Error CheckedFile::error(const std::string& path, const std::string& problem, std::string hint) const {
  if (hint.empty()) hint = "the file is damaged or was not written by this suite: make it again";
  return Error(ErrorKind::input,
               path.empty() ? fmt::format("'{}': {}", name_, problem)
                            : fmt::format("'{}': '{}': {}", name_, path, problem),
               hint);
}

const H5Entry& CheckedFile::entry(const std::string& path, const std::string& hint) const {
  const auto found = listing_.find(path);
  if (found != listing_.end()) return found->second;
  std::vector<std::string> names;
  if (listing_.size() < 1000)
    for (const auto& [name, unused] : listing_) names.push_back(name);
  const std::string near = nearest_name(path, names);
  const std::string format = path != "/" && has_attribute("/", "format") ? text_attribute("/", "format") : "";
  throw error(path,
              near.empty() && !format.empty() ? fmt::format("missing: this is an '{}' file", format)
              : near.empty()                  ? "missing"
                                              : fmt::format("missing (there is '{}')", near),
              hint);
}

H5Dataset CheckedFile::dataset(const std::string& path, hid_t access) const {
  if (!entry(path).is_dataset()) throw error(path, "expected a dataset, found a group or a type");
  H5Dataset dataset(H5Dopen2(file_, path.c_str(), access));
  if (!dataset.valid()) throw error(path, hdf5_message(), make_again);
  if (!whole_.contains(path)) {
    const std::string missing = missing_part(dataset, entry(path));
    if (!missing.empty()) throw error(path, missing, make_again);
    whole_.insert(path);
  }
  return dataset;
}

void CheckedFile::read(const std::string& path, hid_t memory_type, hid_t memory_space, hid_t file_space,
                       void* values) const {
  const H5Dataset opened = dataset(path);
  if (element_count(entry(path).extent) == 0) return;
  if (H5Dread(opened, memory_type, memory_space, file_space, H5P_DEFAULT, values) < 0)
    throw error(path, "cannot be read: " + hdf5_message(), make_again);
}

bool CheckedFile::has_attribute(const std::string& path, const std::string& name) const {
  entry(path);
  const htri_t exists = H5Aexists_by_name(file_, path.c_str(), name.c_str(), H5P_DEFAULT);
  if (exists < 0) throw error(path, hdf5_message(), make_again);
  return exists > 0;
}

H5Attribute CheckedFile::attribute(const std::string& path, const std::string& name, H5T_class_t expected,
                                   const char* expected_text) const {
  if (!has_attribute(path, name)) throw error(path, fmt::format("attribute '{}' is missing", name));
  H5Attribute attribute(H5Aopen_by_name(file_, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute.valid()) throw error(path, hdf5_message(), make_again);
  const H5Type type(H5Aget_type(attribute));
  const H5Space space(H5Aget_space(attribute));
  const H5T_class_t found = H5Tget_class(type);
  if (found != expected || H5Sget_simple_extent_npoints(space) != 1)
    throw error(path, fmt::format("attribute '{}' is not {}", name, expected_text));
  return attribute;
}

std::string CheckedFile::text_attribute(const std::string& path, const std::string& name) const {
  const H5Attribute opened = attribute(path, name, H5T_STRING, "a string");
  const H5Type type(H5Aget_type(opened));
  if (H5Tis_variable_str(type) != 0) {
    if (auto text = variable_length_text(file_, opened)) return *std::move(text);
    throw error(path, fmt::format("attribute '{}' cannot be read", name), make_again);
  }
  std::vector<char> text(H5Tget_size(type));
  if (H5Aread(opened, type, text.data()) < 0) throw error(path, hdf5_message(), make_again);
  return until_nul(text.data(), text.size());
}

std::int64_t CheckedFile::int64_attribute(const std::string& path, const std::string& name) const {
  const H5Attribute opened = attribute(path, name, H5T_INTEGER, "an integer");
  std::int64_t value = 0;
  if (H5Aread(opened, H5T_NATIVE_INT64, &value) < 0) throw error(path, hdf5_message(), make_again);
  return value;
}

double CheckedFile::double_attribute(const std::string& path, const std::string& name) const {
  const H5Attribute opened = attribute(path, name, H5T_FLOAT, "a floating-point number");
  double value = 0;
  if (H5Aread(opened, H5T_NATIVE_DOUBLE, &value) < 0) throw error(path, hdf5_message(), make_again);
  return value;
}

void CheckedFile::verify(const std::function<void(std::int64_t bytes)>& read) const {
  for (const auto& [path, entry] : listing_)
    if (entry.is_dataset() && element_count(entry.extent) > 0) verify(path, entry, read);
}

void CheckedFile::verify(const std::string& path, const H5Entry& entry,
                         const std::function<void(std::int64_t bytes)>& read) const {
  const H5Dataset opened = dataset(path);
  const H5Type type(checked(H5Dget_type(opened), "looking at a dataset"));
  const H5Space in_file(checked(H5Dget_space(opened), "looking at a dataset"));
  const Shape step = chunk_of(opened, entry);
  std::vector<char> values(static_cast<std::size_t>(element_count(step) * entry.element_bytes));
  Shape at(entry.extent.size(), 0);
  do {
    Shape part = step;
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = std::min(part[i], entry.extent[i] - at[i]);
    const std::vector<hsize_t> offset(at.begin(), at.end()), count(part.begin(), part.end());
    if (!part.empty())
      checked(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, offset.data(), nullptr, count.data(), nullptr),
              "selecting a chunk");
    if (H5Dread(opened, type, simple_space(part), in_file, H5P_DEFAULT, values.data()) < 0) {
      const std::string reason = hdf5_message();  // none of a filter that fails
      throw error(path, "damaged: " + (reason.empty() ? "its checksum does not match" : reason), make_again);
    }
    if (read) read(std::ssize(values));
  } while (advance_chunk(at, entry.extent, step));
}

}  // namespace alpa
