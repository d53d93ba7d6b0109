#pragma once
#include <compare>
#include <cstdint>

namespace alpa {

/// Where a key or value stands in its file; both count from 1, columns in characters.
struct TomlLocation {
  std::int64_t line = 1, column = 1;
  auto operator<=>(const TomlLocation&) const = default;
};

enum class TomlKind { absent, string, integer, number, boolean, date, array, table };

}  // namespace alpa
