#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/h5/provenance.h"
#include "libalpa/program/order/simulate.h"

namespace alpa {

/// A step of a run as it was measured.
struct MeasuredStep {
  std::int64_t step = 0;   ///< its number in the run, from 1
  double step_s = 0;       ///< all of it, on rank 0: with what is done before and after the program
  double next_step_s = 0;  ///< of the step after it, in which no row was measured: to do so takes time, on
                           ///< GPUs above all, where every row is waited for
  std::vector<TimelineRow> rows;  ///< each as the first device of its mesh measured it, by its own clock
};

/// Steps of a run and the program that ran, by its fingerprint.
struct MeasuredSteps {
  std::string program_fingerprint;
  std::vector<MeasuredStep> steps;
};

// A run's folder keeps both below RUN_DIR/timeline, where it was asked to (alpa-train --timeline-steps).
std::filesystem::path measured_steps_path(const std::filesystem::path& run_dir);  ///< steps.h5
std::filesystem::path measured_plan_path(const std::filesystem::path& run_dir);   ///< plan.h5, that it ran

/// Writes steps that have the same rows (HDF5, format "alpa-timeline"): /steps/number, /steps/step_s and
/// /steps/next_step_s; for each row /rows/mesh, /rows/segment, /rows/micro_batch (-1: the update) and
/// /rows/instruction; start and duration by step and row, /start_s and /duration_s. Throws as H5Writer does.
void write_measured_steps(const std::filesystem::path&, const MeasuredSteps&, const Provenance&);

/// Rows have the lane and kind that the program says. Throws Error(input) where the file is damaged, holds
/// numbers that cannot be, or has other rows than a step of the program.
MeasuredSteps read_measured_steps(const std::filesystem::path&, const Program&,
                                  const std::string& program_fingerprint);

}  // namespace alpa
