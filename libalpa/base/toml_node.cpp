#include "libalpa/base/toml_node.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

// Text that is not TOML reaches assertions of toml++ 3.3, and any letter outside ASCII a "cannot get here"
// where it reports white space. Both must end in an answer in every build: assertions are on and throw, and
// what is no white space it knows is none.
#pragma GCC diagnostic push
#ifndef __clang__  // has no such warning
#pragma GCC diagnostic ignored "-Wterminate"
#endif
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(claim) ((claim) ? void() : throw std::logic_error(#claim))
#if __has_include(<toml++/impl/unicode.h>)
#include <toml++/impl/forward_declarations.h>
#pragma push_macro("TOML_UNREACHABLE")
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#pragma pop_macro("TOML_UNREACHABLE")
#endif
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
#pragma GCC diagnostic pop

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/base/toml_syntax.h"

namespace alpa {
namespace {

TomlLocation location_of(const toml::source_region& source) {
  return {.line = source.begin.line, .column = source.begin.column};
}

TomlNode converted(const toml::node& from);

void take_table(const toml::table& from, TomlNode& node) {
  node.kind = TomlKind::table;
  for (const auto& [key, value] : from) {
    TomlNode child = converted(value);
    child.key = std::string(key.str());
    child.key_location = location_of(key.source());
    if (child.location.line == 0) child.location = child.key_location;
    node.children.push_back(std::move(child));
  }
  // The parser sorts keys by name; readers want them as written.
  std::stable_sort(node.children.begin(), node.children.end(),
                   [](const TomlNode& a, const TomlNode& b) { return a.key_location < b.key_location; });
}

void take_array(const toml::array& from, TomlNode& node) {
  node.kind = TomlKind::array;
  for (const toml::node& item : from) {
    node.children.push_back(converted(item));
    node.children.back().key_location = node.children.back().location;
  }
}

TomlNode converted(const toml::node& from) {
  TomlNode node;
  node.location = location_of(from.source());
  if (const auto* table = from.as_table()) {
    take_table(*table, node);
  } else if (const auto* array = from.as_array()) {
    take_array(*array, node);
  } else if (const auto* string = from.as_string()) {
    node.kind = TomlKind::string;
    node.string = string->get();
  } else if (const auto* integer = from.as_integer()) {
    node.kind = TomlKind::integer;
    node.integer = integer->get();
    node.number = static_cast<double>(integer->get());
  } else if (const auto* number = from.as_floating_point()) {
    node.kind = TomlKind::number;
    node.number = number->get();
  } else if (const auto* boolean = from.as_boolean()) {
    node.kind = TomlKind::boolean;
    node.boolean = boolean->get();
  } else {
    node.kind = TomlKind::date;
  }
  return node;
}

/// Only now do the nodes stand where they stay.
void set_parents(TomlNode& node) {
  for (TomlNode& child : node.children) {
    child.parent = &node;
    set_parents(child);
  }
}

}  // namespace

std::unique_ptr<TomlContent> parse_toml(std::string_view text, const std::string& file_name) {
  auto content = std::make_unique<TomlContent>();
  content->file_name = file_name;
  try {
    content->root = converted(toml::parse(text, file_name));
  } catch (const toml::parse_error& error) {
    throw toml_syntax_error(text, file_name, location_of(error.source()), error.description());
  } catch (const std::logic_error&) {
    throw Error(ErrorKind::input, fmt::format("{}: not TOML; the parser lost its place", file_name),
                "check the path");
  }
  content->root.location = content->root.key_location = {.line = 1, .column = 1};
  content->root.is_known = true;
  set_parents(content->root);
  return content;
}

std::string toml_path(const TomlNode& node) {
  if (node.parent == nullptr) return "";
  std::string path = toml_path(*node.parent);
  if (node.parent->kind == TomlKind::array)
    return fmt::format("{}[{}]", path, &node - node.parent->children.data());
  return path.empty() ? node.key : path + "." + node.key;
}

std::string toml_value_text(const TomlNode& node) {
  switch (node.kind) {
    case TomlKind::absent:
      return "nothing";
    case TomlKind::string:
      return "the string " + toml_quoted(node.string);
    case TomlKind::integer:
      return fmt::format("{}", node.integer);
    case TomlKind::number:
      return node.number == std::floor(node.number) && std::abs(node.number) < 1e15
                 ? fmt::format("{:.1f}", node.number)  // as a number with a point, which no integer is
                 : fmt::format("{}", node.number);
    case TomlKind::boolean:
      return node.boolean ? "true" : "false";
    case TomlKind::date:
      return "a date or time";
    case TomlKind::array:
      return "an array";
    case TomlKind::table:
      return "a table";
  }
  return "";
}

std::string toml_quoted(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string shown(text);
  if (text.size() > longest) {
    const auto inside_character = [&](std::size_t i) {
      return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
    };
    std::size_t head = longest / 2, tail = text.size() - longest / 2;
    while (head > 0 && inside_character(head)) --head;
    while (tail < text.size() && inside_character(tail)) ++tail;
    shown = fmt::format("{}...{}", text.substr(0, head), text.substr(tail));
  }
  return "'" + printable(shown, "") + "'";
}

}  // namespace alpa
