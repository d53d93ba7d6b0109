#include "apps/calibrate_profile.h"

#include <fmt/core.h>

#include <cstdio>

#include "apps/models.h"
#include "apps/plan_costs.h"
#include "libalpa/base/error.h"
#include "libalpa/calibration/calibrate.h"
#include "libalpa/cluster/noise.h"
#include "libalpa/cluster/profile_file.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/text.h"

namespace alpa {

void calibrate_profile(const std::filesystem::path& run_dir, const std::filesystem::path& profile_path,
                       const std::filesystem::path& out, const Provenance& provenance, Log& log) {
  AtomicFile{out};  // a folder that cannot be written is noticed before the work
  const std::filesystem::path steps = measured_steps_path(run_dir);
  if (!std::filesystem::is_directory(run_dir))
    throw Error(ErrorKind::input, fmt::format("there is no folder '{}'", run_dir.string()),
                "the folder of a run, as alpa-train was given it with --run-dir");
  if (!std::filesystem::exists(steps))
    throw Error(ErrorKind::input,
                fmt::format("run '{}' kept no timeline: there is no '{}'", run_dir.string(), steps.string()),
                "train some steps with alpa-train --timeline-steps 20");
  const PlannedModel planned = read_planned_model(measured_plan_path(run_dir));
  check_program(planned.plan, planned.graph);
  const Program program = lower(planned.graph, planned.plan);
  const MeasuredSteps measured =
      read_measured_steps(steps, program, program_fingerprint(program, planned.graph));
  const Profile profile = read_profile(profile_path);
  if (const std::string warning = warning_of(profile_path, profile); !warning.empty()) log.warning(warning);
  const Calibration result = calibrate(planned.plan, program, measured, profile, run_dir.string());
  const double spread = (result.upper_quartile_s - result.lower_quartile_s) / result.measured_s;
  if (spread > Noise::most)
    log.warning(
        fmt::format("the run's steps differ by {:.0f} % (quartiles): its machines were busy, or it was "
                    "too short; the factors are no better than that",
                    100 * spread));
  write_profile(out, result.profile, provenance);
  std::fputs(calibration_table(result).c_str(), stdout);
}

}  // namespace alpa
