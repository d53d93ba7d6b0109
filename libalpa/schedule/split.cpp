// 1F1B with a split backward, "ZB-H1" (Qi et al., Zero Bubble Pipeline Parallelism, ICLR'24): the gradient
// that the stage before waits for comes first; stage s does the gradients of weights s micro-batches later,
// in what was the bubble at the end. No stage holds more micro-batches than the first does in 1F1B.
#include <algorithm>

#include "libalpa/schedule/orders.h"

namespace alpa {

std::vector<StageRun> split_order(int stage, int stages, int micro_batches) {
  if (stage == 0) return alternating(stages, micro_batches);  // nobody waits for its gradients
  const int delay = stage;
  std::vector<StageRun> order;
  for (const StageRun& run : alternating(stages - stage, micro_batches)) {
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

}  // namespace alpa
