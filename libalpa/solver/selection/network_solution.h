#pragma once
#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/incumbent.h"

namespace alpa {

struct NetworkSolution {
  Incumbent incumbent;                 ///< in the strategies of the given network
  double bound = 0;                    ///< on the cost of every fitting choice
  double certified_bound = -infinity;  ///< likewise, whatever floating point does
  bool infeasible = false;             ///< proven; the rest is then meaningless
  bool hit_time_limit = false;
  bool by_effort_alone = true;  ///< as of SelectionSolution
};

}  // namespace alpa
