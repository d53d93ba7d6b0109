#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// What a sweep goes over, and what is asked of it.
struct SweepOptions {
  std::filesystem::path profile;                ///< "": costs are estimated
  std::vector<std::filesystem::path> clusters;  ///< none: the profile's machines
  std::vector<double> prices;                   ///< of a node an hour: none, or one for each cluster
  std::string devices;                          ///< "8..1024", "8,16,24"
  double target_step_s = 0, target_hours = 0;
  std::int64_t steps = 0;
  PlannerOptions planner;
};
void describe(SweepOptions&, OptionsVisitor&);

/// The numbers of devices that the text names, e.g. {8, 16, 32} for "8..63" and "8,16,32". Throws
/// Error(usage).
std::vector<int> device_counts(const std::string& text);

/// Plans the model for each number of devices of each cluster and prints how it scales; writes `page` unless
/// it is "". The result is the exit status.
int sweep_devices(const std::filesystem::path& model, const SweepOptions&, const std::filesystem::path& page,
                  bool as_json, Log&);

}  // namespace alpa
