#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "libalpa/base/names.h"
#include "libalpa/h5/checked_file.h"
#include "libalpa/h5/file.h"

namespace alpa {

struct H5Reader::Open {
  CheckedFile file;
};

namespace {

bool is_number(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Digits by value, so that 10 follows 9; other names after them.
bool comes_before(const std::string& a, const std::string& b) {
  const bool a_number = is_number(a), b_number = is_number(b);
  if (a_number && b_number && a.size() != b.size()) return a.size() < b.size();
  return a_number != b_number ? a_number : a < b;
}

bool agrees(const Shape& extent, const Shape& expected) {
  return expected.empty() || std::equal(extent.begin(), extent.end(), expected.begin(), expected.end(),
                                        [](std::int64_t e, std::int64_t x) { return x < 0 || e == x; });
}

std::string expected_text(const Shape& expected) {
  std::string text;
  for (const std::int64_t e : expected)
    text += (text.empty() ? "" : "x") + (e < 0 ? std::string("any") : std::to_string(e));
  return text;
}

const H5Entry& expect(const CheckedFile& file, const std::string& path,
                      std::initializer_list<H5Entry::Kind> kinds, const char* kind_text,
                      const Shape& expected) {
  const H5Entry& entry = file.entry(path);
  if (std::find(kinds.begin(), kinds.end(), entry.kind) == kinds.end())
    throw file.error(path, fmt::format("expected {}", kind_text));
  if (!agrees(entry.extent, expected))
    throw file.error(
        path, fmt::format("expected extent {}, found {}", expected_text(expected), shape_text(entry.extent)));
  return entry;
}

// The bytes of a dataset as stored.
std::vector<char> stored(const CheckedFile& file, const std::string& path, const H5Entry& entry) {
  std::vector<char> bytes(static_cast<std::size_t>(element_count(entry.extent) * entry.element_bytes));
  const H5Type type(H5Dget_type(file.dataset(path)));
  file.read(path, type, H5S_ALL, H5S_ALL, bytes.data());
  return bytes;
}

std::vector<std::string> stored_strings(const CheckedFile& file, const std::string& path,
                                        const Shape& expected) {
  const H5Entry& entry = expect(file, path, {H5Entry::Kind::strings}, "fixed-length strings", expected);
  const std::vector<char> bytes = stored(file, path, entry);
  const auto size = static_cast<std::size_t>(entry.element_bytes);
  std::vector<std::string> values;
  for (std::size_t at = 0; at < bytes.size(); at += size)
    values.emplace_back(&bytes[at], strnlen(&bytes[at], size));
  return values;
}

}  // namespace

H5Reader::H5Reader(const std::filesystem::path& path, std::string_view format,
                   std::string_view supported_version, std::int64_t max_dataset_bytes)
    : open_(new Open{CheckedFile(path, format, supported_version, max_dataset_bytes)}) {}

H5Reader::~H5Reader() = default;
H5Reader::H5Reader(H5Reader&&) noexcept = default;
H5Reader& H5Reader::operator=(H5Reader&&) noexcept = default;

const std::string& H5Reader::format_version() const { return open_->file.format_version(); }

bool H5Reader::has(const std::string& path) const { return open_->file.listing().contains(path); }

std::vector<std::string> H5Reader::children(const std::string& group) const {
  const CheckedFile& file = open_->file;
  if (file.entry(group).kind != H5Entry::Kind::group) throw file.error(group, "expected a group");
  const std::string prefix = group == "/" ? group : group + "/";
  std::vector<std::string> names;
  for (auto i = file.listing().upper_bound(prefix); i != file.listing().end() && i->first.starts_with(prefix);
       ++i)
    if (i->first.find('/', prefix.size()) == std::string::npos)
      names.push_back(i->first.substr(prefix.size()));
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

Shape H5Reader::extent(const std::string& path) const {
  const H5Entry& entry = open_->file.entry(path);
  if (!entry.is_dataset()) throw open_->file.error(path, "expected a dataset");
  return entry.extent;
}

std::vector<double> H5Reader::doubles(const std::string& path, const Shape& expected) const {
  const H5Entry& entry = expect(open_->file, path, {H5Entry::Kind::floats, H5Entry::Kind::bfloat16},
                                "floating-point numbers", expected);
  std::vector<double> values(static_cast<std::size_t>(element_count(entry.extent)));
  open_->file.read(path, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, values.data());
  return values;
}

std::vector<std::int64_t> H5Reader::int64s(const std::string& path, const Shape& expected) const {
  const H5Entry& entry = expect(open_->file, path, {H5Entry::Kind::integers}, "integers", expected);
  std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(entry.extent)));
  open_->file.read(path, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, values.data());
  return values;
}

std::vector<std::string> H5Reader::strings(const std::string& path, const Shape& expected) const {
  std::vector<std::string> values = stored_strings(open_->file, path, expected);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (printable(values[i], "") != values[i])
      throw open_->file.error(path, fmt::format("element {} has a control character in it", i));
  return values;
}

std::vector<std::string> H5Reader::enum_names(const std::string& path, const Shape& expected) const {
  const H5Entry& entry = expect(open_->file, path, {H5Entry::Kind::enumeration}, "an enumeration", expected);
  const std::vector<char> bytes = stored(open_->file, path, entry);
  const H5Type type(H5Dget_type(open_->file.dataset(path)));
  const auto size = static_cast<std::size_t>(entry.element_bytes);
  std::map<std::string, std::string> names;  // by stored value
  std::vector<std::string> values;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    std::string value(&bytes[at], size);
    auto known = names.find(value);
    if (known == names.end()) {
      char name[256] = {};
      if (H5Tenum_nameof(type, value.data(), name, sizeof name) < 0) {
        hdf5_message();
        throw open_->file.error(path,
                                fmt::format("element {} is none of the enumeration's values", at / size));
      }
      known = names.emplace(std::move(value), name).first;
    }
    values.push_back(known->second);
  }
  return values;
}

std::string H5Reader::text(const std::string& path) const {
  const std::vector<std::string> texts = stored_strings(open_->file, path, {});
  if (texts.size() != 1)
    throw open_->file.error(path, fmt::format("expected one text, found {}", texts.size()));
  return texts.front();
}

bool H5Reader::has_attribute(const std::string& path, const std::string& name) const {
  return open_->file.has_attribute(path, name);
}

std::string H5Reader::text_attribute(const std::string& path, const std::string& name) const {
  std::string text = open_->file.text_attribute(path, name);
  if (printable(text, "") != text)
    throw open_->file.error(path, fmt::format("attribute '{}' has a control character in it", name));
  return text;
}

std::int64_t H5Reader::int64_attribute(const std::string& path, const std::string& name) const {
  return open_->file.int64_attribute(path, name);
}

double H5Reader::double_attribute(const std::string& path, const std::string& name) const {
  return open_->file.double_attribute(path, name);
}

void H5Reader::verify() const { open_->file.verify(); }

}  // namespace alpa
