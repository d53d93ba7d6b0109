#include "libalpa/schedule/orders.h"

#include <algorithm>

namespace alpa {

std::vector<StageRun> alternating(int lead, int micro_batches) {
  std::vector<StageRun> order;
  for (int m = 0; m < std::min(lead, micro_batches); ++m) order.push_back({SegmentKind::forward, m});
  for (int m = 0; m < micro_batches; ++m) {
    order.push_back({SegmentKind::backward, m});
    if (lead + m < micro_batches) order.push_back({SegmentKind::forward, lead + m});
  }
  return order;
}

}  // namespace alpa
