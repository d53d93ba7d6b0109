#include "libalpa/report/stage_rows.h"

#include <algorithm>

#include "libalpa/base/text_table.h"
#include "libalpa/plan/facts/binding.h"

namespace alpa {

void StageRows::add(const std::vector<StageIndex>& stages, std::vector<std::string> cells) {
  if (rows_.size() > 1 &&
      std::equal(cells.begin(), cells.end(), rows_.back().begin() + 1, rows_.back().end()))
    rows_.pop_back();
  else
    of_last_.clear();
  of_last_.insert(of_last_.end(), stages.begin(), stages.end());
  cells.insert(cells.begin(), stage_numbers(of_last_));
  rows_.push_back(std::move(cells));
}

std::string StageRows::text() const { return text_table(rows_); }

}  // namespace alpa
