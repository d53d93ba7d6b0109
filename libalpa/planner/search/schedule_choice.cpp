#include "libalpa/planner/search/schedule_choice.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {

std::vector<std::string> schedules_of(const std::string& asked, int stages, int micro_batches) {
  if (asked != kAnySchedule) return {asked};
  return differing_schedules(stages, micro_batches);
}

std::vector<std::string> schedules_of(const std::string& asked) {
  return asked == kAnySchedule ? schedule_names() : std::vector<std::string>{asked};
}

std::string first_schedule(const std::string& asked) {
  return asked == kAnySchedule ? schedules().front().name : asked;
}

double least_pipeline_s(const std::vector<StageFloor>& stages, const std::string& asked, int micro_batches) {
  const int count = static_cast<int>(stages.size());
  double least = infinity;
  for (const std::string& schedule : schedules_of(asked, count, micro_batches))
    least = std::min(least, least_pipeline_s(stages, form_of(schedule, micro_batches, count)));
  return least;
}

}  // namespace alpa
