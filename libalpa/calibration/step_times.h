#pragma once
#include <vector>

#include "libalpa/program/order/measured_steps.h"

namespace alpa {

/// Where the time of one measured step went, without waiting for other meshes.
struct StepTimes {
  std::vector<double> row_s;  ///< of each row by itself
  double gaps_s = 0;          ///< between the rows of a mesh, summed over meshes
  double outside_s = 0;       ///< of the step, before and after all rows
};

/// Clocks of meshes agree where the sum over all meshes ends. A receive begins when its message was sent,
/// that sum when the last mesh comes to it; before them there is no gap.
StepTimes step_times(const MeasuredStep&, const Program&);

}  // namespace alpa
