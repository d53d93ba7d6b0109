#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/toml_location.h"

namespace alpa {

/// One value of a parsed document. Tables hold their entries in file order, arrays their items.
struct TomlNode {
  TomlKind kind = TomlKind::table;
  TomlLocation location, key_location;
  std::string key;  ///< "" for array items and the root
  std::string string;
  std::int64_t integer = 0;
  double number = 0;  ///< of an integer too
  bool boolean = false;
  std::vector<TomlNode> children;
  TomlNode* parent = nullptr;

  bool is_known = false;        ///< somebody asked for it
  std::set<std::string> asked;  ///< keys that somebody asked of this table, present or not
};

struct TomlFault {
  TomlLocation location;
  std::string text;
};

struct TomlContent {
  std::string file_name;
  TomlNode root;
  std::vector<TomlFault> faults;
};

/// The tree of a text within the bounds of check_toml_bounds. Throws Error(input) where it is not TOML.
std::unique_ptr<TomlContent> parse_toml(std::string_view text, const std::string& file_name);

/// Where the node stands in its document, e.g. "training.batch", "block[2].name"; "" for the root.
std::string toml_path(const TomlNode&);

/// The value in the words of an error, e.g. "the string 'abc'", "1.5", "a table".
std::string toml_value_text(const TomlNode&);

/// `text` in single quotes on one line: control characters escaped, the middle of a long text left out.
std::string toml_quoted(std::string_view text);

}  // namespace alpa
