#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/file.h"
#include "libalpa/h5/image.h"

namespace alpa {

struct H5Writer::Open {
  Open(std::filesystem::path path, std::string_view format, std::string_view format_version)
      : file(std::move(path)),
        image(file.temporary_path().string(), format, format_version, MemoryFile::Placement::dense) {}

  AtomicFile file;
  H5Image image;
  std::map<std::string, std::map<int, std::string>> scales;  // dataset -> dimension -> scale
  std::optional<Provenance> provenance;  // written last, so that its length moves nothing else
};

namespace {

void refuse_nul(const std::string& path, std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw Error(ErrorKind::run_time,
                fmt::format("'{}': a string to be stored contains a NUL character", path));
}

template <class Number>
void write_array(H5Image& image, const std::string& path, hid_t type, std::span<const Number> values,
                 const Shape& shape, const std::string& units) {
  assert(!shape.empty() && static_cast<std::size_t>(element_count(shape)) == values.size());
  image.dataset(path, type, shape, values.data());
  image.attribute(path, "units", std::string_view(units));
}

Shape length(std::size_t size) { return {static_cast<std::int64_t>(size)}; }

void write_strings(H5Image& image, const std::string& path, std::span<const std::string> values) {
  for (const std::string& value : values) refuse_nul(path, value);
  image.strings(path, values);
}

// The DIMENSION_LIST attribute of the dimension-scale convention: per dimension a list of references to
// scales. Its counterpart on the scale, REFERENCE_LIST, would be a compound type; it serves editing in place,
// which our files are never subject to, and is left out.
void write_scales(H5Image& image, const std::string& path, const std::map<int, std::string>& scales) {
  const H5Object object = image.open(path);
  const H5Space extent(checked(H5Dget_space(object), "attaching a scale"));
  const int rank = H5Sget_simple_extent_ndims(extent);
  std::vector<hobj_ref_t> references(static_cast<std::size_t>(rank));
  std::vector<hvl_t> lists(static_cast<std::size_t>(rank), hvl_t{0, nullptr});
  for (const auto& [dimension, scale] : scales) {
    assert(dimension >= 0 && dimension < rank);
    const auto d = static_cast<std::size_t>(dimension);
    checked(H5Rcreate(&references[d], image.file(), scale.c_str(), H5R_OBJECT, H5I_INVALID_HID),
            "attaching a scale");
    lists[d] = {1, &references[d]};
  }
  const H5Type type(checked(H5Tvlen_create(H5T_STD_REF_OBJ), "attaching a scale"));
  image.attribute(path, "DIMENSION_LIST", type, simple_space({rank}), lists.data());
}

}  // namespace

H5Writer::H5Writer(std::filesystem::path path, std::string_view format, std::string_view format_version)
    : open_(std::make_unique<Open>(std::move(path), format, format_version)) {}

H5Writer::~H5Writer() = default;

void H5Writer::group(const std::string& path) { open_->image.group(path); }

void H5Writer::column(const std::string& path, std::span<const double> values, const std::string& units) {
  array(path, values, length(values.size()), units);
}

void H5Writer::column(const std::string& path, std::span<const std::int64_t> values,
                      const std::string& units) {
  array(path, values, length(values.size()), units);
}

void H5Writer::column(const std::string& path, std::span<const std::int32_t> values,
                      const std::string& units) {
  array(path, values, length(values.size()), units);
}

void H5Writer::column(const std::string& path, std::span<const std::string> values) {
  write_strings(open_->image, path, values);
}

void H5Writer::array(const std::string& path, std::span<const double> values, const Shape& shape,
                     const std::string& units) {
  write_array(open_->image, path, H5T_IEEE_F64LE, values, shape, units);
}

void H5Writer::array(const std::string& path, std::span<const std::int64_t> values, const Shape& shape,
                     const std::string& units) {
  write_array(open_->image, path, H5T_STD_I64LE, values, shape, units);
}

void H5Writer::array(const std::string& path, std::span<const std::int32_t> values, const Shape& shape,
                     const std::string& units) {
  write_array(open_->image, path, H5T_STD_I32LE, values, shape, units);
}

void H5Writer::enum_column(const std::string& path, std::span<const std::int32_t> indices,
                           const std::vector<std::string>& names) {
  const H5Type type(checked(H5Tenum_create(H5T_STD_I32LE), "making an enumeration"));
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(names.size()); ++i)
    checked(H5Tenum_insert(type, names[i].c_str(), &i), "naming a member of an enumeration");
  assert(std::all_of(indices.begin(), indices.end(),
                     [&](std::int32_t i) { return i >= 0 && static_cast<std::size_t>(i) < names.size(); }));
  open_->image.dataset(path, type, length(indices.size()), indices.data());
}

void H5Writer::text(const std::string& path, std::string_view text) {
  const std::string value(text);
  write_strings(open_->image, path, {&value, 1});
}

void H5Writer::attribute(const std::string& path, const std::string& name, std::string_view value) {
  refuse_nul(path, value);
  open_->image.attribute(path, name, value);
}

void H5Writer::attribute(const std::string& path, const std::string& name, double value) {
  open_->image.attribute(path, name, value);
}

void H5Writer::integer_attribute(const std::string& path, const std::string& name, std::int64_t value) {
  open_->image.attribute(path, name, value);
}

void H5Writer::scale(const std::string& path) {
  attribute(path, "CLASS", "DIMENSION_SCALE");
  attribute(path, "NAME", path);
}

void H5Writer::attach_scale(const std::string& path, int dimension, const std::string& scale_path) {
  open_->scales[path][dimension] = scale_path;
}

void H5Writer::provenance(Provenance provenance) { open_->provenance = std::move(provenance); }

void H5Writer::publish() {
  for (const auto& [path, scales] : open_->scales) write_scales(open_->image, path, scales);
  if (open_->provenance) open_->image.provenance(*open_->provenance);
  open_->image.write_to(open_->file);
  open_->file.publish();
  open_.reset();
}

}  // namespace alpa
