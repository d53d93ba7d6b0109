#include "libalpa/planner/search/feasible_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libalpa/base/deadline.h"
#include "libalpa/cluster/micro_batch_counts.h"

namespace alpa {
namespace {

/// An answer is worth that long a wait, no more, and no more than the search was.
constexpr double kPatience_s = 20;

/// Methods that show whether a plan fits without a search: those that need the least memory.
std::vector<std::string> frugal_methods(const std::string& method) {
  if (method == "auto" || method == "search" || method == "intra-only") return {"zero-3", "megatron"};
  return {method};
}

class Trial {
 public:
  Trial(const PlannerOptions& options, const std::function<bool(const PlannerOptions&)>& fits)
      : options_(options),
        fits_(fits),
        deadline_(std::min(kPatience_s, options.time_limit_s), options.stop) {}

  template <class Change>
  bool fits_with(Change change) {
    for (const std::string& method : frugal_methods(options_.method)) {
      PlannerOptions changed = options_;
      changed.method = method;
      changed.time_limit_s = deadline_.seconds_left();
      change(changed);
      if (changed.time_limit_s > 0 && fits_(changed)) return true;
    }
    return false;
  }

 private:
  const PlannerOptions& options_;
  const std::function<bool(const PlannerOptions&)>& fits_;
  Deadline deadline_;
};

}  // namespace

std::string feasible_options(std::int64_t groups, int cluster_devices, const PlannerOptions& options,
                             const std::function<bool(const PlannerOptions&)>& fits) {
  Trial trial(options, fits);
  const int devices = options.devices > 0 ? options.devices : cluster_devices;
  std::vector<std::string> found;
  if (may_keep_less(options.rematerialize) &&
      trial.fits_with([](PlannerOptions& other) { other.rematerialize = Rematerialize::automatic; }))
    found.push_back("--rematerialize auto");
  const int tried = options.micro_batches > 0
                        ? options.micro_batches
                        : micro_batch_counts(groups, most_profiled_micro_batches(devices)).back();
  for (int count = 2 * tried; count <= groups; count *= 2)
    if (groups % count == 0 && trial.fits_with([&](PlannerOptions& other) { other.micro_batches = count; })) {
      found.push_back(fmt::format("--micro-batches {}", count));
      break;
    }
  for (int more = 2 * devices; more <= cluster_devices; more *= 2)
    if (trial.fits_with([&](PlannerOptions& other) { other.devices = more; })) {
      found.push_back(fmt::format("--devices {}", more));
      break;
    }
  for (int more = devices; found.empty() && more <= cluster_devices; more *= 2)  // no single change does
    if (trial.fits_with([&](PlannerOptions& other) {
          other.devices = more;
          other.micro_batches = 0;
          other.rematerialize = Rematerialize::automatic;
        }))
      found.push_back(fmt::format("--devices {} --micro-batches 0 --rematerialize auto", more));
  return found.empty() ? "" : fmt::format("{}: a plan fits then", fmt::join(found, ", or "));
}

}  // namespace alpa
