#pragma once
#include <string>
#include <vector>

#include "libalpa/ops/vertex_program.h"

namespace alpa {

/// A pass over rows as CUDA C++ for the toolkit's run-time compiler: one kernel, in which what a function
/// makes for another stays in a register (Cavs, ATC'18, section 3.5).
struct RowPassSource {
  /// extern "C" __global__ void row_pass(Arguments), where Arguments has `at[places]`, each a pointer to f32
  /// and the numbers from row to row as 64 bits, then the rows as 64 bits.
  std::string text;
  std::vector<RowPlace> places;  ///< in memory, each once
};

RowPassSource row_pass_source(const RowPass&);

}  // namespace alpa
