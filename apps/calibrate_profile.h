#pragma once
#include <filesystem>

#include "libalpa/base/log.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// Writes `out`, a profile corrected by the measured timeline of a run (calibration/calibrate.h), and prints
/// what it learned. Throws Error(input) where the run kept no timeline.
void calibrate_profile(const std::filesystem::path& run_dir, const std::filesystem::path& profile,
                       const std::filesystem::path& out, const Provenance&, Log&);

}  // namespace alpa
