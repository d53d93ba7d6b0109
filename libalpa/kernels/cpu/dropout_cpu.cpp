#include <algorithm>

#include "libalpa/base/philox.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// Elements that are drawn together.
constexpr std::int64_t kBatch = 256;

/// Which runs of elements lie side by side both in the tile and in its whole tensor, and where.
///
/// A run is what the innermost dimensions up to the first split one span; `outer` counts the runs of one
/// sample.
struct Runs {
  Shape extents, whole;  ///< of the dimensions of a sample
  std::size_t outer_rank = 0;
  std::int64_t length = 1, outer = 1;

  Runs(const Shape& tile, const Shape& whole_tile) : extents(tile.begin() + 1, tile.end()) {
    whole = whole_tile.empty() ? extents : Shape(whole_tile.begin() + 1, whole_tile.end());
    outer_rank = extents.size();
    bool together = true;
    while (outer_rank > 0 && together) {
      --outer_rank;
      length *= extents[outer_rank];
      together = extents[outer_rank] == whole[outer_rank];
    }
    for (std::size_t d = 0; d < outer_rank; ++d) outer *= extents[d];
  }

  /// Row-major index within the whole sample of the first element of a run.
  std::int64_t first_index(std::int64_t run, const Tile& tile) const {
    std::int64_t index = 0, stride = 1;
    for (std::size_t d = extents.size(); d-- > 0;) {
      std::int64_t place = origin_of(tile, d + 1);
      if (d < outer_rank) {
        place += run % extents[d];
        run /= extents[d];
      }
      index += place * stride;
      stride *= whole[d];
    }
    return index;
  }
};

struct Draw {
  std::uint64_t key, high;
  float rate, scale;
};

/// y[i] = x[i] dropped or scaled for i in [0, count), the draw of element i being that of index first + i.
template <class T>
void drop(const Draw& draw, std::int64_t first, std::int64_t count, const T* x, T* y) {
  std::uint32_t words[kBatch + 8];
  for (std::int64_t done = 0; done < count; done += kBatch) {
    const std::int64_t n = count - done < kBatch ? count - done : kBatch;
    const std::int64_t start = first + done, block = start / 4, skip = start % 4;
    const std::int64_t blocks = (skip + n + 3) / 4;
#pragma omp simd
    for (std::int64_t b = 0; b < blocks; ++b) {
      const PhiloxBlock drawn = philox(draw.key, draw.high, static_cast<std::uint64_t>(block + b));
      words[4 * b] = drawn.word[0];
      words[4 * b + 1] = drawn.word[1];
      words[4 * b + 2] = drawn.word[2];
      words[4 * b + 3] = drawn.word[3];
    }
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const float uniform = static_cast<float>(static_cast<std::int32_t>(words[skip + i] >> 8)) * 0x1p-24f;
      y[done + i] = from_float<T>(uniform < draw.rate ? 0.0f : to_float(x[done + i]) * draw.scale);
    }
  }
}

template <class T>
void drop_tile(const KernelCall& call, const Shape& shape, double rate, std::uint64_t stream) {
  const Tile& tile = call.operands[0];
  const Runs runs(shape, tile.whole);
  const T* x = call.operand<T>(0);
  T* y = call.result<T>(0);
  const std::uint64_t key = philox_key(call.point.seed, stream);
  const std::int64_t first_sample = call.point.first_sample + origin_of(tile, 0);
  const std::int64_t step = call.point.step;
  const auto scale = static_cast<float>(1.0 / (1.0 - rate));
  for_ranges(element_count(shape), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t run = at / runs.length, inside = at % runs.length;
      const std::int64_t left = runs.length - inside, n = left < end - at ? left : end - at;
      const auto sample = static_cast<std::uint64_t>(first_sample + run / runs.outer);
      const Draw draw{key, (static_cast<std::uint64_t>(step) << 32) + sample, static_cast<float>(rate),
                      scale};
      drop(draw, runs.first_index(run % runs.outer, tile) + inside, n, x + at, y + at);
      at += n;
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> dropout_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t") || shape.operands[0].shape.empty()) return nullptr;
  const double rate = shape.attributes.number("rate");
  const auto stream = static_cast<std::uint64_t>(shape.attributes.integer("stream", 0));
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, extents = shape.operands[0].shape](const KernelCall& call) {
      drop_tile<T>(call, extents, rate, stream);
    });
  });
}

}  // namespace alpa::ops
