#pragma once
#include <cstdint>
#include <span>

#include "libalpa/base/instruction_set.h"
#include "libalpa/base/tensor_type.h"
#include "libalpa/comm/communicator.h"

namespace alpa {

/// `into` becomes the reduction of `parts` (`count` elements each, all in host memory) in the order given:
/// ((part 0 + part 1) + part 2) + ... Sums of bf16 and f16 are accumulated in f32 and rounded once; a maximum
/// with a NaN among its operands is a NaN. `into` may be one of the parts, or lies apart from all of them.
/// The bits are those of every instruction set.
void reduce_in_order(std::span<const void* const> parts, void* into, std::int64_t count, DType, Reduction,
                     InstructionSet = best_instruction_set());

}  // namespace alpa
