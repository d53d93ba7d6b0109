#pragma once
#include "tests/commands/timed_runs.h"

namespace alpa {

/// How predictions of steps must be.
struct PredictionTargets {
  double median_error = 0;  ///< of predicted over measured
  double kendall_tau = 0;   ///< over pairs of entries of one model that differ by more than a tenth, measured
};

/// Measures small models under many entries of synchronisation each, on four emulated hosts of one rank at 1
/// Gbit/s, in turn for so many rounds, beside what was predicted of each.
void hold_predictions(int rounds, int steps, const PredictionTargets&, HeldTargets&);

}  // namespace alpa
