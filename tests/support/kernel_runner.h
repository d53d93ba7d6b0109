#pragma once
#include <span>
#include <vector>

#include "libalpa/kernels/kernel.h"
#include "tests/support/tensor_values.h"

namespace alpa {

/// One application of a kernel to tensors given as f64 values.
struct KernelRun {
  const OpDef* op = nullptr;
  std::vector<TensorType> operands, results;  ///< of the tiles
  Attributes attributes;
  std::vector<Shape> operand_origins, result_origins;  ///< empty: the tiles are whole tensors
  std::vector<Shape> operand_wholes, result_wholes;
  RunPoint point;
  bool accumulate = false;
  std::vector<Values> results_before;  ///< what `accumulate` adds to; of all results or of the first
};

/// The results. Operands and results lie in device memory of their own, which starts as the device leaves it;
/// the workspace has exactly the bytes that the operator states.
std::vector<Values> run_kernel(Device&, const KernelRun&, std::span<const Values> operands);

}  // namespace alpa
