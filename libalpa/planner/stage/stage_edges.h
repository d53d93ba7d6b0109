#pragma once
#include <vector>

#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// What an edge costs each time, the conversion and what has to run where there is one, for each choice at
/// its end.
std::vector<double> edge_seconds(const StageVariables&, const StageEdge&, std::size_t from, const MeshCosts&);

EdgeEnd start_of_edge(const StageVariables&, const StageEdge&, std::size_t choice, const MeshCosts&);
EdgeEnd end_of_edge(const StageVariables&, const StageEdge&, std::size_t choice, const MeshCosts&);

/// What a conversion may hold, each once.
struct ConversionCases {
  /// What the end is like, whether the value rests as it is made, and what is held then.
  struct Case {
    int end = 0;
    bool as_made = false;
    std::vector<std::int64_t> bytes;  ///< [piece]
  };
  std::vector<Case> cases;
  std::vector<int> end_of;                ///< [choice at its end] -> Case::end
  std::vector<int> start_of;              ///< [choice at its start] -> row of case_of
  std::vector<std::vector<int>> case_of;  ///< [start][place(end, as made)] -> case; -1: there is none

  static std::size_t place(int end, bool as_made) {
    return static_cast<std::size_t>(2 * end + (as_made ? 1 : 0));
  }
};
ConversionCases cases_of(const StageVariables&, const StageConversion&, const MeshCosts&);

}  // namespace alpa
