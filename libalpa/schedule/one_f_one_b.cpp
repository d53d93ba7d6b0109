// 1F1B, "PipeDream-flush" (Narayanan et al., ICML'21): stage s of S starts with S - s forwards, so that never
// more than that are in flight.
#include "libalpa/schedule/orders.h"

namespace alpa {

std::vector<StageRun> one_f_one_b_order(StageIndex stage, int stages, int micro_batches) {
  return alternating(stages - stage, micro_batches);
}

}  // namespace alpa
