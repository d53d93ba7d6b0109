#pragma once
#include <cstdint>

#include "libalpa/base/float_types.h"
#include "libalpa/base/instruction_set.h"
#include "libalpa/kernels/cpu/host_threads.h"

namespace alpa {

/// Calls body(begin, end), vectorised, for ranges that make up [0, count): one per thread, or a single one
/// where less than two `grain`s are to be done.
template <class Body>
void for_ranges(std::int64_t count, std::int64_t grain, const Body& body) {
  const InstructionSet set = best_instruction_set();
  const std::int64_t threads = host_threads();
  if (threads == 1 || count < 2 * grain) {
    run_vectorized(set, 0, count, body);
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t t = 0; t < threads; ++t)
    run_vectorized(set, count * t / threads, count * (t + 1) / threads, body);
}

/// As for_ranges, but cut into `pieces` ranges whatever the number of threads: what is summed piece by piece
/// then does not depend on it. body(piece, begin, end).
template <class Body>
void for_pieces(std::int64_t count, std::int64_t pieces, const Body& body) {
  const InstructionSet set = best_instruction_set();
  const auto run = [&](std::int64_t piece) {
    run_vectorized(set, count * piece / pieces, count * (piece + 1) / pieces,
                   [&body, piece](std::int64_t begin, std::int64_t end) { body(piece, begin, end); });
  };
  if (pieces == 1) return run(0);
#pragma omp parallel for schedule(static)
  for (std::int64_t p = 0; p < pieces; ++p) run(p);
}

/// to[i] = from[i], rounded or widened. A loop apart from what makes the numbers is often the faster way: GCC
/// 12 gives loops that also sum vectors of half the width.
template <class From, class To>
void round_numbers(const From* from, std::int64_t count, To* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<To>(to_float(from[i]));
}

/// Elements, and floating-point operations of matrix products, that are worth a thread's start.
constexpr std::int64_t kElementGrain = 8192;
constexpr std::int64_t kFlopGrain = 1'000'000;

/// Rows of that many elements that are worth a thread's start.
constexpr std::int64_t row_grain(std::int64_t width) {
  return width >= kElementGrain ? 1 : kElementGrain / (width + 1) + 1;
}

}  // namespace alpa
