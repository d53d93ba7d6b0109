#pragma once
#include <functional>
#include <string>

#include "libalpa/cluster/profile.h"
#include "libalpa/profiler/instrument.h"

namespace alpa {

struct MeasureOptions {
  double time_budget_s = 0;  ///< stop when it is used up on any rank; 0: no bound
  double publish_every_s = 20;
  double progress_every_s = 5;
};

/// How far measuring has come.
struct MeasureProgress {
  int done = 0, total = 0;  ///< things to measure, those that were known already left out
  double elapsed_s = 0;
  double left_s = 0;  ///< estimate
};

/// What measuring needs from outside and reports there. All but `now_s` and `wants_stop` may be empty, and
/// are on ranks that neither write nor speak.
struct MeasureSurroundings {
  std::vector<int> nodes;            ///< of this job, in order of their ranks: where in Profile::nodes
  std::function<double()> now_s;     ///< monotonic
  std::function<bool()> wants_stop;  ///< of any rank ends all
  std::function<void(const Profile&)> publish;  ///< what is known by now, from time to time and at the end
  std::function<void(const MeasureProgress&)> progress;
  std::function<void(const std::string& signature, const std::string& why)> failed;
};

struct MeasureResult {
  Profile profile;
  int measured = 0, reused = 0, failed = 0;
  int left = 0;              ///< not measured: the time was up, or some rank wanted to stop
  bool was_stopped = false;  ///< some rank wanted to stop
};

/// Adds to `known` what it lacks of the workload: collectives first, then operators in the workload's order.
/// Where it lacks anything the reference is timed at the beginning, after the collectives and after each
/// quarter of the operators.
/// A sample that fails is noted as failed and the next one is taken; failed ones of earlier runs are tried
/// again. Every rank calls it alike.
MeasureResult measure(const Workload&, Profile known, Instrument&, const MeasureOptions&,
                      const MeasureSurroundings&);

/// The workload cut down to operators with these signatures; collectives stay.
Workload only(Workload, const std::vector<std::string>& signatures);

}  // namespace alpa
