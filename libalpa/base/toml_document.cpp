#include "libalpa/base/toml_document.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/base/other_tools.h"
#include "libalpa/base/toml_bounds.h"
#include "libalpa/base/toml_node.h"
#include "libalpa/base/toml_purpose.h"
#include "libalpa/base/toml_syntax.h"
#include "libalpa/base/unreadable_file.h"

namespace alpa {
namespace {

constexpr std::size_t kMostFaultsKept = 1000, kMostFaultsShown = 50;

void note(TomlContent& content, TomlLocation location, const std::string& text) {
  if (content.faults.size() < kMostFaultsKept) content.faults.push_back({location, text});
}

std::string located(const TomlContent& content, TomlLocation at) {
  return fmt::format("{}:{}:{}", content.file_name, at.line, at.column);
}

void mark_known(TomlNode& node) {
  node.is_known = true;
  for (TomlNode& child : node.children) mark_known(child);
}

/// "in 'training'", or "" for the top of the file.
std::string in_table(const TomlNode& table) {
  const std::string path = toml_path(table);
  return path.empty() ? "" : " in " + toml_quoted(path);
}

/// `lists`: whether it names the keys of the table where nothing better is known.
std::string unknown_key_text(const TomlNode& table, const TomlNode& child, bool lists) {
  const std::string text = fmt::format("unknown key {}{}", toml_quoted(child.key), in_table(table));
  const std::string where = where_set(child.key);
  const bool is_value = child.kind != TomlKind::table && child.kind != TomlKind::array;
  if (is_value && is_set_elsewhere(child.key)) return fmt::format("{}; try: {}", text, where);
  const std::vector<std::string> known(table.asked.begin(), table.asked.end());
  const std::string nearest = nearest_name(child.key, known);
  if (!nearest.empty()) return fmt::format("{}; did you mean '{}'?", text, nearest);
  if (!where.empty()) return fmt::format("{}; try: {}", text, where);
  return known.empty() || !lists ? text : fmt::format("{}; known here: {}", text, fmt::join(known, ", "));
}

void note_unknown_keys(const TomlNode& node, std::vector<TomlFault>& faults) {
  bool lists = true;
  for (const TomlNode& child : node.children) {
    if (faults.size() >= kMostFaultsKept) return;
    if (child.is_known) {
      note_unknown_keys(child, faults);
    } else if (node.kind == TomlKind::table) {
      faults.push_back({child.key_location, unknown_key_text(node, child, lists)});
      lists &= faults.back().text.find("; known here: ") == std::string::npos;
    }
  }
}

std::string refusal_text(const TomlNode& node, const std::string& expected) {
  return fmt::format("{}: expected {}, got {}", toml_quoted(toml_path(node)), expected,
                     toml_value_text(node));
}

/// How a number should have been written that was not: "; write 8"; "" where that is not known.
std::string number_hint(const TomlNode& node, bool is_integer) {
  if (node.kind == TomlKind::number && is_integer && node.number == std::floor(node.number) &&
      std::abs(node.number) < 1e15)
    return fmt::format("; write {:.0f}", node.number);
  if (node.kind != TomlKind::string || node.string.empty() || node.string[0] < '0' || node.string[0] > '9')
    return "";
  double value = 0;
  const char* const end = node.string.data() + node.string.size();
  const auto [rest, code] = std::from_chars(node.string.data(), end, value);
  if (code != std::errc{}) return "";
  return rest == end ? fmt::format("; write {} without quotes", node.string)
                     : "; write a number alone, in the unit of the key";
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "'" : ", '") + std::string(word) + "'";
  return text;
}

}  // namespace

TomlDocument::TomlDocument(std::unique_ptr<TomlContent> content) : content_(std::move(content)) {}
TomlDocument::TomlDocument(TomlDocument&&) noexcept = default;
TomlDocument& TomlDocument::operator=(TomlDocument&&) noexcept = default;
TomlDocument::~TomlDocument() = default;

TomlDocument TomlDocument::parse(std::string_view text, const std::string& file_name) {
  check_is_toml_text(text, file_name);
  check_toml_bounds(text, file_name);
  return TomlDocument(parse_toml(text, file_name));
}

TomlTable TomlDocument::root() { return {content_.get(), &content_->root}; }
const std::string& TomlDocument::file_name() const { return content_->file_name; }
void TomlDocument::fault(TomlLocation location, const std::string& text) { note(*content_, location, text); }

std::size_t TomlDocument::fault_count() const { return content_->faults.size(); }

void TomlDocument::finish() {
  if (const std::string mistaken = mistaken_purpose(content_->root); !mistaken.empty())
    throw Error(ErrorKind::input, fmt::format("{}: {}", content_->file_name, mistaken));
  std::vector<TomlFault> faults = content_->faults;
  note_unknown_keys(content_->root, faults);
  if (faults.empty()) return;
  std::stable_sort(faults.begin(), faults.end(),
                   [](const TomlFault& a, const TomlFault& b) { return a.location < b.location; });
  // Two readers of one value find the same fault.
  const auto same = [](const TomlFault& a, const TomlFault& b) {
    return a.location == b.location && a.text == b.text;
  };
  faults.erase(std::unique(faults.begin(), faults.end(), same), faults.end());

  std::string text;
  for (std::size_t i = 0; i < std::min(faults.size(), kMostFaultsShown); ++i)
    text += (i == 0 ? "" : "\n") + located(*content_, faults[i].location) + ": " + faults[i].text;
  if (faults.size() >= kMostFaultsKept)
    text += fmt::format("\n{}: and many more faults", content_->file_name);
  else if (faults.size() > kMostFaultsShown)
    text += fmt::format("\n{}: and {} more faults", content_->file_name, faults.size() - kMostFaultsShown);
  throw Error(ErrorKind::input, text);
}

TomlDocument read_toml(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw unreadable_file(path, error.message());
  if (!std::filesystem::is_regular_file(status)) throw unreadable_file(path, "not a regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw unreadable_file(path, std::strerror(errno));
  std::string text(kTomlMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw unreadable_file(path, std::strerror(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() <= kTomlMaxBytes && is_blank_toml(text))
    throw Error(ErrorKind::input, fmt::format("'{}' is empty, expected TOML", path.string()),
                "check the path");
  return TomlDocument::parse(text, path.string());
}

TomlKind TomlValue::kind() const { return node_ == nullptr ? TomlKind::absent : node_->kind; }
TomlLocation TomlValue::location() const { return node_ == nullptr ? TomlLocation{} : node_->location; }
std::string TomlValue::where() const { return located(*content_, location()); }
void TomlValue::fault(const std::string& text) const { note(*content_, location(), text); }

void TomlValue::skip() const {
  if (node_ != nullptr) mark_known(*node_);
}

void TomlValue::refuse(const std::string& expected) const {
  fault(refusal_text(*node_, expected));
  skip();
}

bool TomlValue::is(TomlKind wanted, const std::string& expected) const {
  if (node_ == nullptr) return false;
  if (node_->kind != wanted) refuse(expected);
  return node_->kind == wanted;
}

std::string TomlValue::string() const { return is(TomlKind::string, "a string") ? node_->string : ""; }

std::string TomlValue::name() const {
  const std::string expected =
      fmt::format("a name: 1 to {} bytes, none of them a control character", kLongestName);
  if (!is(TomlKind::string, expected)) return "";
  if (is_name(node_->string)) return node_->string;
  refuse(expected);
  return "";
}

std::int64_t TomlValue::integer(Range range) const {
  if (node_ == nullptr) return static_cast<std::int64_t>(stand_in(range));
  if (kind() == TomlKind::integer && range.contains(node_->number)) return node_->integer;
  const std::string bounds = range_text(range);
  fault(refusal_text(*node_, bounds.empty() ? "an integer" : "an integer, " + bounds) +
        number_hint(*node_, true));
  skip();
  return static_cast<std::int64_t>(stand_in(range));
}

double TomlValue::number(Range range) const {
  if (node_ == nullptr) return stand_in(range);
  const bool is_number = kind() == TomlKind::integer || kind() == TomlKind::number;
  if (is_number && std::isfinite(node_->number) && range.contains(node_->number)) return node_->number;
  const std::string bounds = range_text(range);
  fault(refusal_text(*node_, bounds.empty() ? "a finite number" : "a finite number, " + bounds) +
        number_hint(*node_, false));
  skip();
  return stand_in(range);
}

bool TomlValue::boolean() const { return is(TomlKind::boolean, "true or false") && node_->boolean; }

TomlTable TomlValue::table() const { return {content_, is(TomlKind::table, "a table") ? node_ : nullptr}; }

std::vector<TomlValue> TomlValue::items() const {
  std::vector<TomlValue> items;
  if (kind() == TomlKind::table && node_->parent->parent == nullptr) {
    fault(refusal_text(*node_, "an array") + fmt::format("; write [[{}]]", node_->key));
    skip();
    return items;
  }
  if (!is(TomlKind::array, "an array")) return items;
  for (TomlNode& child : node_->children) {
    child.is_known = true;
    items.push_back({content_, &child});
  }
  return items;
}

std::size_t TomlValue::word(std::span<const std::string_view> words) const {
  assert(!words.empty());
  const std::string expected = "one of " + joined(words);
  if (!is(TomlKind::string, expected)) return 0;
  const auto found = std::find(words.begin(), words.end(), node_->string);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const std::string nearest = nearest_name(node_->string, {words.begin(), words.end()});
  fault(fmt::format("{}: expected {}, got {}{}", toml_quoted(toml_path(*node_)), expected,
                    toml_quoted(node_->string), nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  return 0;
}

TomlLocation TomlTable::location() const { return node_ == nullptr ? TomlLocation{} : node_->location; }
std::string TomlTable::where() const { return located(*content_, location()); }
void TomlTable::fault(const std::string& text) const { note(*content_, location(), text); }

void TomlTable::skip() const {
  if (node_ != nullptr) mark_known(*node_);
}

TomlValue TomlTable::value(std::string_view key) const {
  if (node_ == nullptr) return {content_, nullptr};
  node_->asked.emplace(key);
  const auto found = std::find_if(node_->children.begin(), node_->children.end(),
                                  [&](const TomlNode& child) { return child.key == key; });
  if (found == node_->children.end()) return {content_, nullptr};
  found->is_known = true;
  return {content_, &*found};
}

TomlValue TomlTable::value(std::string_view key, std::string_view expected) const {
  const TomlValue given = value(key);
  if (!given.exists() && node_ != nullptr)
    fault(fmt::format("missing key '{}'{}, expected {}", key, in_table(*node_), expected));
  return given;
}

bool TomlTable::has(std::string_view key) const { return value(key).exists(); }

std::string TomlTable::string(std::string_view key, std::string_view default_value) const {
  const TomlValue given = value(key);
  return given.exists() ? given.string() : std::string(default_value);
}

std::int64_t TomlTable::integer(std::string_view key, Range range) const {
  return value(key, "an integer").integer(range);
}

std::int64_t TomlTable::integer(std::string_view key, std::int64_t default_value, Range range) const {
  const TomlValue given = value(key);
  return given.exists() ? given.integer(range) : default_value;
}

double TomlTable::number(std::string_view key, Range range) const {
  return value(key, "a number").number(range);
}

double TomlTable::number(std::string_view key, double default_value, Range range) const {
  const TomlValue given = value(key);
  return given.exists() ? given.number(range) : default_value;
}

bool TomlTable::boolean(std::string_view key, bool default_value) const {
  const TomlValue given = value(key);
  return given.exists() ? given.boolean() : default_value;
}

std::vector<std::string> TomlTable::strings(std::string_view key) const {
  std::vector<std::string> list;
  for (const TomlValue& item : value(key).items()) list.push_back(item.string());
  return list;
}

std::vector<std::int64_t> TomlTable::integers(std::string_view key, Range range) const {
  std::vector<std::int64_t> list;
  for (const TomlValue& item : value(key).items()) list.push_back(item.integer(range));
  return list;
}

std::vector<double> TomlTable::numbers(std::string_view key, Range range) const {
  std::vector<double> list;
  for (const TomlValue& item : value(key).items()) list.push_back(item.number(range));
  return list;
}

TomlTable TomlTable::table(std::string_view key) const { return value(key, "a table").table(); }

std::optional<TomlTable> TomlTable::optional_table(std::string_view key) const {
  const TomlValue given = value(key);
  if (!given.exists()) return std::nullopt;
  return given.table();
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) const {
  std::vector<TomlTable> list;
  for (const TomlValue& item : value(key).items()) list.push_back(item.table());
  return list;
}

std::vector<TomlEntry> TomlTable::entries() const {
  std::vector<TomlEntry> list;
  if (node_ == nullptr) return list;
  for (TomlNode& child : node_->children) {
    child.is_known = true;
    list.push_back({child.key, child.key_location, TomlValue(content_, &child)});
  }
  return list;
}

}  // namespace alpa
