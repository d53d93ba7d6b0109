#pragma once
#include <filesystem>

#include "apps/app.h"
#include "apps/rank_device.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/planner/tuning/tuning_search.h"
#include "libalpa/trainer/trial_runner.h"

namespace alpa {

/// What `alpa-train tune` takes.
struct TuneSettings {
  std::filesystem::path plan, profile, transfer_from, out;
  int trials = 60;        ///< in all, those of earlier runs among them
  bool anew = false;      ///< where `out` has trials of another plan, learns from them in place of refusing
  double max_hours = 0;   ///< from the start; 0: no limit
  double end_time_s = 0;  ///< of the job, seconds since 1970; 0: not known
  TuningSettings search;
  TrialSettings trial;
  DeviceSettings device;
};
void describe(TuneSettings&, OptionsVisitor&);

/// Times candidates on all ranks, one after another, and keeps what is known in `out` after each: the plan
/// that is the fastest so far, and every trial. Goes on from there where `out` exists. Rank 0 searches and
/// broadcasts which candidate is next. Returns the exit status.
int tune_plan(TuneSettings, const ParallelRun&, const Provenance&);

}  // namespace alpa
