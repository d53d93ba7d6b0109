#include "libalpa/base/error.h"

#include <algorithm>

#include "libalpa/base/names.h"
#include "libalpa/base/other_tools.h"

namespace alpa {

Error::Error(ErrorKind kind, std::string happened, std::string hint)
    : kind_(kind), happened_(std::move(happened)), hint_(std::move(hint)) {
  compose();
}

Error& Error::while_doing(std::string step) {
  steps_.push_back(std::move(step));
  compose();
  return *this;
}

void Error::compose() {
  text_ = happened_;
  if (!hint_.empty()) text_ += "\n  try: " + hint_;
  for (const std::string& step : steps_) text_ += "\n  while " + step;
  text_ = printable(text_);
}

namespace {

/// Letters to change, add, leave out or exchange with the next.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const bool differs = a[i - 1] != b[j - 1];
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(const std::string& wrong, const std::vector<std::string>& names) {
  std::string best = known_by_others_as(wrong, names);
  if (!best.empty()) return best;
  const std::string plain = plain_word(wrong);
  std::size_t best_distance = (plain.size() < 4 ? 1 : std::max<std::size_t>(2, plain.size() / 3)) + 1;
  for (const std::string& name : names) {
    const std::string known = plain_word(name);
    const std::size_t distance = edit_distance(plain, known);
    // Of a short word, half of the letters may be others, but not the first.
    if (2 * distance >= plain.size() && plain[0] != known[0]) continue;
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace alpa
