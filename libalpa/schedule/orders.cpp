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

std::vector<StageRun> alternating_split(int lead, int delay, int micro_batches) {
  if (delay == 0) return alternating(lead, micro_batches);
  std::vector<StageRun> order;
  for (const StageRun& run : alternating(lead, micro_batches)) {
    if (run.kind == SegmentKind::forward) {
      order.push_back(run);
      continue;
    }
    order.push_back({SegmentKind::backward_inputs, run.micro_batch});
    if (run.micro_batch >= delay) order.push_back({SegmentKind::backward_weights, run.micro_batch - delay});
  }
  for (int m = std::max(micro_batches - delay, 0); m < micro_batches; ++m)
    order.push_back({SegmentKind::backward_weights, m});
  return order;
}

void leave_out_from(int micro_batch, MeshOrders& orders) {
  for (std::vector<StageRun>& order : orders)
    std::erase_if(order, [&](const StageRun& run) { return run.micro_batch >= micro_batch; });
}

void join_first_backwards(std::vector<StageRun>& order) {
  const auto is_of_first = [](const StageRun& run, SegmentKind kind) {
    return run.stage == 0 && run.kind == kind;
  };
  for (std::size_t i = 0; i < order.size(); ++i)
    if (is_of_first(order[i], SegmentKind::backward_inputs) &&
        order[i + 1] != StageRun{SegmentKind::backward_weights, order[i].micro_batch, StageIndex(0)})
      return;
  std::erase_if(order, [&](const StageRun& run) { return is_of_first(run, SegmentKind::backward_weights); });
  for (StageRun& run : order)
    if (is_of_first(run, SegmentKind::backward_inputs)) run.kind = SegmentKind::backward;
}

}  // namespace alpa
