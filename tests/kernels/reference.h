#pragma once
#include <span>
#include <vector>

#include "libalpa/kernels/kernel.h"
#include "tests/support/tensor_values.h"

namespace alpa {

/// What an operator means: loop nests over whole tensors in f64, written for reading, independent of the
/// kernels.
std::vector<Values> reference(const OpDef&, const OpCall&, std::span<const Values> operands,
                              const RunPoint& = {});

}  // namespace alpa
