#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace alpa {

/// Characters of UTF-8 text, not bytes.
std::size_t text_width(const std::string& text);

/// Rows as lines of a table, two spaces between columns, each as wide as its widest cell; rows may have
/// different numbers of cells. Columns are aligned to the left, `numbers` (of them, from 0) to the right.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::size_t>& numbers = {});

}  // namespace alpa
