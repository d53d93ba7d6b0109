#include "libalpa/kernels/recurrent_cpu.h"

#include <numeric>

#include "libalpa/kernels/kernels_cpu.h"

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

namespace ops {

std::unique_ptr<Kernel> step_weights_cpu(const KernelShape& shape) {
  if (!types_match(shape, "i->f")) return nullptr;
  const std::int64_t batch = shape.results[0].shape[0], steps = shape.results[0].shape[1];
  const bool mean = shape.attributes.integer("mean", 0) != 0;
  return host_kernel([=](const KernelCall& call) {
    const std::int32_t* lengths = call.operand<std::int32_t>(0);
    float* weights = call.result<float>(0);
    const Tile& tile = call.results[0];
    const std::int64_t first = origin_of(tile, 1), whole = tile.whole.empty() ? steps : tile.whole[1];
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::int64_t length = std::clamp<std::int64_t>(lengths[i], 0, whole);
      const std::int64_t inside = std::clamp<std::int64_t>(length - first, 0, steps);
      float* row = weights + i * steps;
      std::fill(row, row + inside, mean ? 1.0f / static_cast<float>(length) : 1.0f);
      std::fill(row + inside, row + steps, 0.0f);
    }
  });
}

}  // namespace ops
}  // namespace alpa
