// 1F1B with a split backward, "ZB-H1" (Qi et al., Zero Bubble Pipeline Parallelism, ICLR'24): the gradient
// that the stage before waits for comes first; stage s does the gradients of weights s micro-batches later,
// in what was the bubble at the end. No stage holds more micro-batches than the first does in 1F1B.
#include "libalpa/schedule/orders.h"

namespace alpa {

std::vector<StageRun> split_order(StageIndex stage, int stages, int micro_batches) {
  return alternating_split(stages - stage, stage, micro_batches);
}

}  // namespace alpa
