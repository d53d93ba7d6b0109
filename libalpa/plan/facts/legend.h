#pragma once
#include <span>
#include <string>
#include <string_view>

#include "libalpa/base/json.h"

namespace alpa {

/// A word, symbol or unit of what is printed of plans, and what it stands for. Text, pages and share/doc take
/// it from one list.
struct LegendEntry {
  std::string_view term;           ///< as it is printed, digits for example: "TP4"
  std::string_view meaning;        ///< on one line, no full stop
  std::string_view found_as = {};  ///< what says that it is there; "": the term
};
std::span<const LegendEntry> legend();

/// Of the terms that stand in `printed`: a blank line, then lines as wide as a screen. A digit of a term
/// stands for any number there. "": none does.
std::string legend_of(std::string_view printed);

JsonArray legend_json();
std::string legend_table();  ///< as a table of Markdown

}  // namespace alpa
