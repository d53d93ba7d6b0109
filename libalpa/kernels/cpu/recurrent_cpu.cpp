#include "libalpa/kernels/cpu/recurrent_cpu.h"

#include <numeric>

namespace alpa {

RecurrentCall::RecurrentCall(const RecurrentExtents& extents, const std::int32_t* lengths, void* workspace)
    : e_(extents), lengths_(lengths), workspace_(static_cast<float*>(workspace)) {
  order_ = static_cast<std::int32_t*>(workspace) + e_.scratch.order;
  state = workspace_ + e_.scratch.state;
  cell = workspace_ + e_.scratch.cell;
  step = workspace_ + e_.scratch.step;
  std::fill(state, step, 0.0f);
  std::iota(order_, order_ + e_.batch, 0);
  // Samples of one length in their own order: equal calls are to give equal bits.
  std::sort(order_, order_ + e_.batch, [this](std::int32_t a, std::int32_t b) {
    return length(a) != length(b) ? length(a) > length(b) : a < b;
  });
}

}  // namespace alpa
