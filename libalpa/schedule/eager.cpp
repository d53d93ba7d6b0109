// Eager 1F1B (Zhuang et al., MLSys'23, section 4): stage s of S starts with 2 (S - s) - 1 forwards. What a
// stage needs next is then already on its way while it computes, for as many more micro-batches in flight.
#include "libalpa/schedule/orders.h"

namespace alpa {

std::vector<StageRun> eager_order(StageIndex stage, int stages, int micro_batches) {
  return alternating(2 * (stages - stage) - 1, micro_batches);
}

}  // namespace alpa
