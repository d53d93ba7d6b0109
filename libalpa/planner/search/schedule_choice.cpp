#include "libalpa/planner/search/schedule_choice.h"

#include <algorithm>

#include "libalpa/planner/planner_options.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {

std::vector<std::string> schedules_of(const std::string& asked, int stages, int micro_batches) {
  if (asked != kAnySchedule) return {asked};
  return differing_schedules(stages, micro_batches);
}

std::string first_schedule(const std::string& asked) {
  return asked == kAnySchedule ? schedules().front().name : asked;
}

PipelineForm bounding_form(const std::string& asked, int micro_batches, int most_stages) {
  const std::vector<std::string> names =
      asked == kAnySchedule ? schedule_names() : std::vector<std::string>{asked};
  PipelineForm form = form_of(names.front(), micro_batches, most_stages);
  for (const std::string& name : names) {
    const PipelineSchedule& schedule = find_schedule(name);
    for (int stages = 1; stages <= most_stages; ++stages)
      for (const StageIndex stage : indices_to<StageIndex>(static_cast<std::size_t>(stages))) {
        const std::vector<StageRun> order = schedule.order(stage, stages, micro_batches);
        int& least = form.in_flight[stages - stage];
        least = std::min(least, most_in_flight(order));
      }
  }
  // With more in flight, others than the first wait for less.
  form.whole_backwards = form.whole_backwards && names.size() == 1;
  return form;
}

}  // namespace alpa
