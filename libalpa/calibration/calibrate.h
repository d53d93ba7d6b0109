#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/profile.h"
#include "libalpa/plan/plan.h"
#include "libalpa/program/order/measured_steps.h"

namespace alpa {

/// What the costs of one kind (cluster/cost_kind.h) came to in a step of the run, over all meshes.
struct KindComparison {
  std::string kind;
  double predicted_s = 0, measured_s = 0;  ///< of the step
  int timed = 0;                           ///< runs of its instructions that were measured, in all steps
  double factor = 1;                       ///< that its measurements are corrected by

  static constexpr int enough = 20;  ///< timed runs; of fewer a few odd ones might decide
};

/// What a run says of the profile that it was planned with.
struct Calibration {
  Profile profile;                    ///< corrected
  std::vector<KindComparison> kinds;  ///< those that take the most measured time first
  double host_s = 0;      ///< of a step, beside its instructions: launches, data, scalars read back
  double lateness_s = 0;  ///< of a step: sums over all devices waited so long for the last one
  double call_gap_s =
      0;  ///< both by the calls of operators: each takes so much longer in the corrected profile
  double predicted_s = 0, corrected_s = 0;  ///< of the step, simulated with the profile and the corrected one
  double measured_s = 0;                    ///< of steps whose rows were not measured: median, and
  double lower_quartile_s = 0, upper_quartile_s = 0;
  int steps = 0, meshes = 1;
};

/// Compares what a run's instructions took with what the profile says, and corrects the profile.
///
/// What an instruction takes is counted without waiting for other meshes: a receive from when its message was
/// sent, by clocks that agree at the end of the sum over all meshes. A kind's factor is the ratio of what its
/// instructions took to what was predicted, both added up over a step, the median of the steps: so long ones
/// weigh most, a step that was disturbed does not count, and the corrected step is near the measured one.
/// What the steps of which every row was measured took longer than those between them is taken off all rows
/// alike. Of fewer than `enough` timed runs a part is believed: a factor f of n of them becomes f^(n /
/// enough).
///
/// A kind's factor goes to all of its measurements: of operators by type, of collectives and transfers within
/// or between nodes, of copies to the cost of a launch and the rate of memory. Sums of scalars over all
/// devices, which end when the last device is there, are a kind of their own, with the smallest all-reduce
/// for their measurement; what they take beyond the next larger one is lateness.
///
/// `run` is what the corrections are said to be from. Throws Error(input) where the profile is of other
/// machines, or did not measure what most of the run's computation was.
Calibration calibrate(const Plan&, const Program&, const MeasuredSteps&, const Profile&,
                      const std::string& run);

/// Kind, share of the step, predicted, measured and factor of each; then the step before and after.
std::string calibration_table(const Calibration&);

}  // namespace alpa
