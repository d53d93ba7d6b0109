#include "libalpa/base/error.h"

#include <algorithm>
#include <numeric>

#include "libalpa/base/names.h"

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

int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& wrong, const std::vector<std::string>& names) {
  std::string best;
  int best_distance = static_cast<int>(std::max<std::size_t>(2, wrong.size() / 3)) + 1;
  for (const std::string& name : names) {
    const int distance = edit_distance(wrong, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace alpa
