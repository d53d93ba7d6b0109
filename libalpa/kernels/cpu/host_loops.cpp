#include "libalpa/kernels/cpu/host_loops.h"

#include <omp.h>

#include <algorithm>

namespace alpa {

InstructionSet best_instruction_set() {
  static const InstructionSet best = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("bmi2"))
      return InstructionSet::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
      return InstructionSet::avx2;
    return InstructionSet::baseline;
  }();
  return best;
}

int host_threads() { return omp_get_max_threads(); }

// oneDNN takes it for granted that it gets as many threads as it asks for, and leaves work undone otherwise.
HostThreads::HostThreads(int threads) : before_(omp_get_max_threads()) {
  omp_set_dynamic(0);
  omp_set_num_threads(std::min(threads, omp_get_thread_limit()));
}

HostThreads::~HostThreads() { omp_set_num_threads(before_); }

}  // namespace alpa
