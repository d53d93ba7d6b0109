#include "libalpa/comm/reduce.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "libalpa/base/float_types.h"

namespace alpa {
namespace {

// A block of accumulators stays in the first-level cache while the parts stream through it.
constexpr std::int64_t kBlock = 2048;

template <class T>
struct Float {
  using Stored = T;
  using Accumulated = float;
  static float load(T value) { return to_float(value); }
  static T store(float value) { return from_float<T>(value); }
};

struct I32 {
  using Stored = std::int32_t;
  using Accumulated = std::int32_t;
  static std::int32_t load(std::int32_t value) { return value; }
  static std::int32_t store(std::int32_t value) { return value; }
};

struct Sum {
  static float of(float a, float b) { return a + b; }
  static std::int32_t of(std::int32_t a, std::int32_t b) {  // wraps around
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};

struct Max {
  static float of(float a, float b) { return a > b || a != a ? a : b; }
  static std::int32_t of(std::int32_t a, std::int32_t b) { return std::max(a, b); }
};

template <class Type, class Operation>
void reduce_range(std::span<const void* const> parts, void* into, std::int64_t begin, std::int64_t end) {
  using Stored = typename Type::Stored;
  std::array<typename Type::Accumulated, kBlock> accumulated;
  for (std::int64_t first = begin; first < end; first += kBlock) {
    const std::int64_t length = std::min(kBlock, end - first);
    const Stored* values = static_cast<const Stored*>(parts[0]) + first;
    for (std::int64_t i = 0; i < length; ++i) accumulated[i] = Type::load(values[i]);
    for (const void* part : parts.subspan(1)) {
      values = static_cast<const Stored*>(part) + first;
      for (std::int64_t i = 0; i < length; ++i)
        accumulated[i] = Operation::of(accumulated[i], Type::load(values[i]));
    }
    Stored* results = static_cast<Stored*>(into) + first;
    for (std::int64_t i = 0; i < length; ++i) results[i] = Type::store(accumulated[i]);
  }
}

template <class Type, class Operation>
void reduce_blocks(std::span<const void* const> parts, void* into, std::int64_t count, InstructionSet set) {
  run_vectorized(set, 0, count, [=](std::int64_t begin, std::int64_t end) {
    reduce_range<Type, Operation>(parts, into, begin, end);
  });
}

template <class Type>
void reduce_type(std::span<const void* const> parts, void* into, std::int64_t count, Reduction reduction,
                 InstructionSet set) {
  switch (reduction) {
    case Reduction::sum:
      return reduce_blocks<Type, Sum>(parts, into, count, set);
    case Reduction::max:
      return reduce_blocks<Type, Max>(parts, into, count, set);
  }
}

}  // namespace

void reduce_in_order(std::span<const void* const> parts, void* into, std::int64_t count, DType dtype,
                     Reduction reduction, InstructionSet set) {
  assert(!parts.empty() && count >= 0);
  switch (dtype) {
    case DType::f32:
      return reduce_type<Float<float>>(parts, into, count, reduction, set);
    case DType::bf16:
      return reduce_type<Float<Bfloat16>>(parts, into, count, reduction, set);
    case DType::f16:
      return reduce_type<Float<Float16>>(parts, into, count, reduction, set);
    case DType::i32:
      return reduce_type<I32>(parts, into, count, reduction, set);
  }
}

}  // namespace alpa
