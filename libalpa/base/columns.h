#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libalpa/base/json.h"

namespace alpa {

/// What a row has in a column; std::monostate: nothing, or it is not known. Several numbers or words are an
/// array in JSON, and in CSV one text with semicolons between them.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string, std::vector<std::int64_t>,
                          std::vector<std::string>>;

JsonObject& set_cell(JsonObject&, std::string_view name, const Cell&);

/// A line of CSV (RFC 4180; it ends as other lines of text do, without a carriage return). Numbers read back
/// to the same bits; what is not known is empty.
std::string csv_line(const std::vector<Cell>&);

/// One thing that is said of each row, for JSON and CSV alike.
template <class Row>
struct Column {
  std::string name;  ///< ends in its unit where it has one: "compute_s", "total_bytes"
  std::function<Cell(const Row&)> of;
  std::string group = {};  ///< the member of the row's JSON that it is in; "": the row's own
};

/// Titles, then a line for each row.
template <class Row>
std::string csv_table(std::span<const Column<Row>> columns, const std::vector<Row>& rows) {
  std::vector<Cell> cells;
  for (const Column<Row>& column : columns) cells.emplace_back(column.name);
  std::string text = csv_line(cells);
  for (const Row& row : rows) {
    cells.clear();
    for (const Column<Row>& column : columns) cells.push_back(column.of(row));
    text += csv_line(cells);
  }
  return text;
}

/// The members of one group.
template <class Row>
JsonObject json_of(std::span<const Column<Row>> columns, const Row& row, std::string_view group = "") {
  JsonObject json;
  for (const Column<Row>& column : columns)
    if (column.group == group) set_cell(json, column.name, column.of(row));
  return json;
}

}  // namespace alpa
