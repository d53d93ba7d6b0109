#include "libalpa/base/instruction_set.h"

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

}  // namespace alpa
