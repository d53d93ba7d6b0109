#include "libalpa/planner/search/schedule_choice.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {

std::vector<std::string> schedules_of(const std::string& asked, int stages, int stages_per_mesh,
                                      int micro_batches) {
  if (asked == kAnySchedule) return differing_schedules(stages, stages_per_mesh, micro_batches);
  if (stages == 1 || may_have(asked, stages_per_mesh)) return {first_schedule(asked, stages_per_mesh)};
  return {};
}

std::vector<std::string> schedules_of(const std::string& asked) {
  return asked == kAnySchedule ? schedule_names(1) : std::vector{first_schedule(asked)};
}

std::string first_schedule(const std::string& asked, int stages_per_mesh) {
  if (asked != kAnySchedule && find_schedule(asked).takes(stages_per_mesh)) return asked;
  return schedule_names(stages_per_mesh).front();
}

bool may_have(const std::string& asked, int stages_per_mesh) {
  return asked == kAnySchedule || find_schedule(asked).takes(stages_per_mesh);
}

std::vector<int> meshes_of_stages(const PinnedPlan& pinned) {
  return meshes_of_stages(find_schedule(first_schedule(pinned.schedule, pinned.stages_per_mesh)),
                          static_cast<int>(pinned.stages.size()), pinned.stages_per_mesh);
}

double least_pipeline_s(const std::vector<StageFloor>& stages, const std::string& asked, int stages_per_mesh,
                        int micro_batches) {
  const int count = static_cast<int>(stages.size());
  double least = infinity;
  if (stages_per_mesh > 1) {
    for (const std::string& schedule : schedule_names(stages_per_mesh))
      if (asked == kAnySchedule || asked == schedule)
        least = std::min(least, least_shared_s(stages, schedule, stages_per_mesh));
    return least;
  }
  for (const std::string& schedule : schedules_of(asked, count, 1, micro_batches))
    least = std::min(least, least_pipeline_s(stages, form_of(schedule, micro_batches, count)));
  return least;
}

double least_shared_s(const std::vector<StageFloor>& stages, const std::string& schedule,
                      int stages_per_mesh) {
  const std::vector<int> meshes =
      meshes_of_stages(find_schedule(schedule), static_cast<int>(stages.size()), stages_per_mesh);
  std::vector<double> end_s(stages.size());  // [mesh]
  double forwards_s = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    double& end = end_s[meshes[s]];
    if (end == 0) end = forwards_s;
    end += stages[s].step_s;
    forwards_s += stages[s].forward_s;
  }
  return std::ranges::max(end_s);
}

double least_overlapping_s(const std::vector<StageFloor>& stages) {
  return std::ranges::max(stages, {}, &StageFloor::step_s).step_s;
}

}  // namespace alpa
