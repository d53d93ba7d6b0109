#include "libalpa/planner/search/bound_coverage.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <ranges>

#include "libalpa/base/units.h"
#include "libalpa/planner/search/schedule_choice.h"

namespace alpa {
namespace {

constexpr const char* kByWork =
    "whatever its schedule, its overlap and the stages on a mesh, by computation alone";

std::string axes_text(int axes) {
  return axes == 1 ? "one axis" : fmt::format("up to {} axes", axes == 2 ? "two" : "three");
}

std::string meshes_text(const SearchSpace& any, int devices_per_node) {
  const int nodes = any.devices / devices_per_node;
  const bool doubling = any.doubling_sizes && nodes > 2;
  return fmt::format("on submeshes of {}{}{}", axes_text(any.mesh_axes),
                     any.mesh_axes > 1 && nodes > 1 ? " of which all but the first stay within a node" : "",
                     doubling ? ", of 1, 2, 4, 8 ... or all nodes" : "");
}

/// "1 micro-batch", "1, 2, 4 micro-batches"
std::string counts_text(const std::map<int, StepBound>& of_count) {
  return of_count.size() == 1 ? count_text(of_count.begin()->first, "micro-batch")
                              : fmt::format("{} micro-batches", fmt::join(std::views::keys(of_count), ", "));
}

/// What is said of one schedule alone, if that is more.
std::string schedules_text(const std::string& schedule, const StepBound& known) {
  constexpr double same = 1 + 1e-4;
  if (schedule != kAnySchedule) return "under schedule " + schedule;
  return "under any schedule of stages with meshes of their own" +
         (known.of_first_s <= same * known.step_s
              ? ""
              : fmt::format(" (under {} alone {} at least)", first_schedule(schedule),
                            seconds_text(known.of_first_s)));
}

}  // namespace

std::string coverage_text(const std::vector<SpaceBounds>& spaces, const SearchSpace& any,
                          int devices_per_node, bool by_work) {
  std::vector<std::string> covered;
  for (const auto& [space, bounds] : spaces)
    covered.push_back(
        fmt::format("of {}{}{}", counts_text(bounds),
                    space.mesh_axes < any.mesh_axes ? " on meshes of " + axes_text(space.mesh_axes) : "",
                    space.is_selective ? "" : " without selective recomputation"));
  return fmt::format("every plan {}, cut into stages between {} clusters of layers, {}, {}",
                     fmt::join(covered, ", "), any.cuts.size() - 1, meshes_text(any, devices_per_node),
                     by_work ? kByWork : schedules_text(any.schedule, least_bound(spaces)));
}

}  // namespace alpa
