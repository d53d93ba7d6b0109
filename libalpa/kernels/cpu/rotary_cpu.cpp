#include <algorithm>
#include <cmath>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// Cosines and sines of the angles of consecutive positions, one row of `pairs` per position.
class Angles {
 public:
  Angles(std::int64_t positions, std::int64_t pairs, double theta)
      : pairs_(pairs),
        theta_(theta),
        cosines_(static_cast<std::size_t>(positions * pairs)),
        sines_(cosines_.size()) {
    move_to(0);
  }

  /// Makes row 0 that of position `first`.
  void move_to(std::int64_t first) {
    if (first == first_) return;
    first_ = first;
    for (std::size_t i = 0; i < cosines_.size(); ++i) {
      const auto position = static_cast<double>(first + static_cast<std::int64_t>(i) / pairs_);
      const auto pair = static_cast<double>(static_cast<std::int64_t>(i) % pairs_);
      const double angle = position * std::pow(theta_, -pair / static_cast<double>(pairs_));
      cosines_[i] = static_cast<float>(std::cos(angle));
      sines_[i] = static_cast<float>(std::sin(angle));
    }
  }

  const float* cosines(std::int64_t row) const { return cosines_.data() + row * pairs_; }
  const float* sines(std::int64_t row) const { return sines_.data() + row * pairs_; }

 private:
  std::int64_t pairs_, first_ = -1;
  double theta_;
  std::vector<float> cosines_, sines_;
};

template <class T>
void turn(const T* x, const float* cosines, const float* sines, float direction, std::int64_t pairs, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float a = to_float(x[i]), b = to_float(x[i + pairs]), c = cosines[i], s = direction * sines[i];
    y[i] = from_float<T>(a * c - b * s);
    y[i + pairs] = from_float<T>(a * s + b * c);
  }
}

}  // namespace

std::unique_ptr<Kernel> rotary_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Shape& extents = shape.operands[0].shape;
  const std::int64_t positions = extents[1], heads = extents[2], width = extents[3], pairs = width / 2;
  if (width % 2 != 0) return nullptr;
  const float direction = shape.attributes.integer("inverse", 0) ? -1.0f : 1.0f;
  Angles angles(positions, pairs, shape.attributes.number("theta", 10000.0));
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, rows = extents[0] * positions](const KernelCall& call) mutable {
      angles.move_to(origin_of(call.operands[0], 1));
      const T* x = call.operand<T>(0);
      T* y = call.result<T>(0);
      for_ranges(rows, row_grain(heads * width), [=, &angles](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const std::int64_t position = r % positions;
          for (std::int64_t at = r * heads * width; at < (r + 1) * heads * width; at += width)
            turn(x + at, angles.cosines(position), angles.sines(position), direction, pairs, y + at);
        }
      });
    });
  });
}

std::unique_ptr<Kernel> rotary_at_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ti->t")) return nullptr;
  const Shape& extents = shape.operands[0].shape;
  const std::int64_t heads = extents[2], width = extents[3], pairs = width / 2;
  if (width % 2 != 0) return nullptr;
  Angles angles(1, pairs, shape.attributes.number("theta", 10000.0));
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, rows = extents[0] * extents[1]](const KernelCall& call) mutable {
      const std::int32_t* places = call.operand<std::int32_t>(1);
      const T* x = call.operand<T>(0);
      T* y = call.result<T>(0);
      for (std::int64_t r = 0; r < rows; ++r) {
        angles.move_to(std::max(places[r], 0));
        for (std::int64_t at = r * heads * width; at < (r + 1) * heads * width; at += width)
          turn(x + at, angles.cosines(0), angles.sines(0), 1.0f, pairs, y + at);
      }
    });
  });
}

}  // namespace alpa::ops
