#include "libalpa/program/schedule.h"

#include <algorithm>

namespace alpa {

std::vector<ScheduledSegment> schedule_of(ScheduleKind kind, int stage, int stages, int micro_batches) {
  const int lead = kind == ScheduleKind::gpipe ? micro_batches : std::min(stages - stage, micro_batches);
  std::vector<ScheduledSegment> order;
  for (int m = 0; m < lead; ++m) order.push_back({SegmentKind::forward, m});
  for (int m = 0; m < micro_batches; ++m) {
    order.push_back({SegmentKind::backward, m});
    if (lead + m < micro_batches) order.push_back({SegmentKind::forward, lead + m});
  }
  return order;
}

int most_in_flight(const std::vector<ScheduledSegment>& order) {
  int flying = 0, most = 0;
  for (const ScheduledSegment& run : order) {
    if (run.segment == SegmentKind::forward) most = std::max(most, ++flying);
    if (run.segment == SegmentKind::backward) --flying;
  }
  return most;
}

}  // namespace alpa
