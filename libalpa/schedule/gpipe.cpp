// GPipe (Huang et al., NeurIPS'19): all forwards, then all backwards.
#include "libalpa/schedule/orders.h"

namespace alpa {

std::vector<StageRun> gpipe_order(StageIndex, int, int micro_batches) {
  return alternating(micro_batches, micro_batches);
}

}  // namespace alpa
