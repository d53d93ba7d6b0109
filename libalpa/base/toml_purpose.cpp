#include "libalpa/base/toml_purpose.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace alpa {
namespace {

/// A kind of TOML files, and keys that files of that kind alone have, and readers of that kind ask for.
struct Purpose {
  std::string_view name, given_as;
  std::vector<std::string> keys;
};

const std::vector<Purpose>& purposes() {
  static const std::vector<Purpose> all{
      {"a model", "which alpa-profile and alpa-plan take first", {"layer", "training", "dimensions", "base"}},
      {"a cluster file", "which --cluster takes", {"devices_per_node", "within_node", "part"}},
      {"a pinned plan", "which --pin takes", {"stage"}},
      {"a file of constraints",
       "which --constraints takes",
       {"most_stages", "most_tensor_parallel", "most_zero", "boundary", "together", "apart"}}};
  return all;
}

}  // namespace

std::string mistaken_purpose(const TomlNode& root) {
  const auto is_asked = [&](const std::string& key) { return root.asked.contains(key); };
  const auto is_there = [&](const std::string& key) {
    return std::ranges::any_of(root.children, [&](const TomlNode& child) { return child.key == key; });
  };
  const auto expected = std::ranges::find_if(
      purposes(), [&](const Purpose& each) { return std::ranges::any_of(each.keys, is_asked); });
  if (expected == purposes().end() || std::ranges::any_of(expected->keys, is_there)) return "";
  for (const Purpose& each : purposes())
    if (&each != &*expected && std::ranges::any_of(each.keys, is_there))
      return fmt::format("this is {}, {}; expected {}", each.name, each.given_as, expected->name);
  return "";
}

}  // namespace alpa
