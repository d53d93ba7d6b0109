// "ZB-H2" (Qi et al., Zero Bubble Pipeline Parallelism, ICLR'24): stage s of S starts with 2 (S - s) - 1
// forwards, which fill the bubble at the beginning, and does the gradients of weights 2 s micro-batches after
// those that the stage before waits for, which fills that at the end. Where the three take equally long, no
// stage ever waits for another; each holds up to 2 S - 1 micro-batches.
#include "libalpa/schedule/orders.h"

namespace alpa {

std::vector<StageRun> zero_bubble_order(StageIndex stage, int stages, int micro_batches) {
  return alternating_split(2 * (stages - stage) - 1, 2 * stage, micro_batches);
}

}  // namespace alpa
