#include "libalpa/schedule/schedule.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/schedule/orders.h"

namespace alpa {
namespace {

constexpr PipelineSchedule kSchedules[] = {
    {"1f1b", "one forward, one backward in turn (PipeDream-flush)", one_f_one_b_order},
    {"gpipe", "all forwards, then all backwards (GPipe, NeurIPS'19)", gpipe_order},
    {"eager-1f1b", "1f1b with earlier forwards, so that transfers have time (MLSys'23)", eager_order},
    {"split-1f1b", "1f1b, gradients of weights when there is time (ZB-H1, ICLR'24)", split_order},
    {"zero-bubble", "split-1f1b, more forwards ahead: no bubble, up to twice the memory (ZB-H2)",
     zero_bubble_order},
};

}  // namespace

std::span<const PipelineSchedule> schedules() { return kSchedules; }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const PipelineSchedule& schedule : kSchedules) names.push_back(schedule.name);
  return names;
}

const PipelineSchedule& find_schedule(const std::string& name) {
  const auto found = std::ranges::find(kSchedules, name, &PipelineSchedule::name);
  if (found != std::end(kSchedules)) return *found;
  throw Error(ErrorKind::input, fmt::format("unknown schedule '{}'", name),
              fmt::format("one of {}", fmt::join(schedule_names(), ", ")));
}

std::vector<std::string> differing_schedules(int stages, int micro_batches) {
  if (stages == 1) return {kSchedules[0].name};
  std::vector<std::string> names;
  std::vector<std::vector<std::vector<StageRun>>> known;
  for (const PipelineSchedule& schedule : kSchedules) {
    std::vector<std::vector<StageRun>> orders;
    for (const StageIndex stage : indices_to<StageIndex>(static_cast<std::size_t>(stages)))
      orders.push_back(schedule.order(stage, stages, micro_batches));
    if (std::ranges::find(known, orders) != known.end()) continue;
    names.push_back(schedule.name);
    known.push_back(std::move(orders));
  }
  return names;
}

int most_in_flight(const std::vector<StageRun>& order) {
  int flying = 0, most = 0;
  for (const StageRun& run : order) {
    if (run.kind == SegmentKind::forward) most = std::max(most, ++flying);
    if (run.kind == SegmentKind::backward || run.kind == SegmentKind::backward_weights) --flying;
  }
  return most;
}

}  // namespace alpa
