#pragma once
#include <cstdint>

namespace alpa {

/// Vector instructions that loops are compiled for. One program holds all three forms and takes the widest
/// that its processor has, so that a build runs on any x86-64 machine.
enum class InstructionSet { baseline, avx2, avx512 };

InstructionSet best_instruction_set();

// `flatten` inlines the body and what it calls, which brings it under the function's target: loops of plain
// C++ are vectorised three times, once for each.
template <class Body>
[[gnu::flatten, gnu::noinline]] void run_baseline(const Body& body, std::int64_t begin, std::int64_t end) {
  body(begin, end);
}
template <class Body>
[[gnu::flatten, gnu::noinline, gnu::target("avx2,fma,bmi,bmi2")]] void run_avx2(const Body& body,
                                                                                std::int64_t begin,
                                                                                std::int64_t end) {
  body(begin, end);
}
#ifdef __clang__  // would ignore the whole attribute
#define ALPA_WIDEST_VECTORS ""
#else
#define ALPA_WIDEST_VECTORS ",prefer-vector-width=512"
#endif
template <class Body>
[[gnu::flatten, gnu::noinline,
  gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2" ALPA_WIDEST_VECTORS)]] void
run_avx512(const Body& body, std::int64_t begin, std::int64_t end) {
  body(begin, end);
}

/// body(begin, end) in the form for `set`. Bodies hold loops over plain arrays, no OpenMP regions. Sums go
/// into functions of their own: GCC 12 does not vectorise a reduction that stands in a lambda.
template <class Body>
void run_vectorized(InstructionSet set, std::int64_t begin, std::int64_t end, const Body& body) {
  switch (set) {
    case InstructionSet::avx512:
      return run_avx512(body, begin, end);
    case InstructionSet::avx2:
      return run_avx2(body, begin, end);
    case InstructionSet::baseline:
      return run_baseline(body, begin, end);
  }
}

}  // namespace alpa
