#include "libalpa/base/columns.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include "libalpa/base/overloaded.h"

namespace alpa {
namespace {

template <class Items>
JsonArray array_of_all(const Items& items) {
  JsonArray array;
  for (const auto& item : items) array.add(item);
  return array;
}

std::string quoted_where_needed(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string cell_text(const Cell& cell) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::string(); },
                 [](std::int64_t number) { return std::to_string(number); },
                 [](double number) { return std::isnan(number) ? "" : fmt::format("{}", number); },
                 [](const std::string& text) { return text; },
                 [](const auto& several) { return fmt::format("{}", fmt::join(several, ";")); }},
      cell);
}

}  // namespace

JsonObject& set_cell(JsonObject& json, std::string_view name, const Cell& cell) {
  return std::visit(
      Overloaded{[&](std::monostate) -> JsonObject& { return json.set_null(name); },
                 [&](std::int64_t number) -> JsonObject& { return json.set(name, number); },
                 [&](double number) -> JsonObject& { return json.set(name, number); },
                 [&](const std::string& text) -> JsonObject& { return json.set(name, text); },
                 [&](const auto& several) -> JsonObject& { return json.set(name, array_of_all(several)); }},
      cell);
}

std::string csv_line(const std::vector<Cell>& cells) {
  std::string line;
  for (const Cell& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    line += quoted_where_needed(cell_text(cell));
  }
  return line + '\n';
}

}  // namespace alpa
