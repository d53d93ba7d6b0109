#pragma once
#include <string>
#include <vector>

#include "libalpa/plan/plan.h"

namespace alpa {

/// A table of meshes by their stages, in which neighbours with the same cells share a line.
class StageRows {
 public:
  explicit StageRows(std::vector<std::string> titles) : rows_{std::move(titles)} {}
  void add(const std::vector<StageIndex>& stages, std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  ///< the first cell is the stages'
  std::vector<StageIndex> of_last_;
};

}  // namespace alpa
