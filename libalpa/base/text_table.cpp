#include "libalpa/base/text_table.h"

#include <algorithm>

namespace alpa {

std::size_t text_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::size_t>& numbers) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& cells : rows) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], text_width(cells[c]));
  }
  std::string text;
  for (const std::vector<std::string>& cells : rows) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string space(widths[c] - text_width(cells[c]), ' ');
      const bool is_number = std::ranges::find(numbers, c) != numbers.end();
      line += (is_number ? space + cells[c] : cells[c] + space) + "  ";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace alpa
