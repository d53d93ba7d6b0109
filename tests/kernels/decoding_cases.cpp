#include "tests/kernels/cases.h"

namespace alpa {

void add_decoding_cases(std::vector<OpCase>& cases) {
  cases.push_back({"rotary_at", "t[2x3x2x6] i[2x3]", {{"theta", 10000.0}}, 40});
  cases.push_back({"rotary_at", "t[5x1x3x8] i[5x1]", {{"theta", 500.0}}, 3});
  cases.push_back({"store", "t[3x5] t[3x5]", {}});
  cases.push_back({"store", "t[31x297] t[31x297]", {}});
  // Heads wider than a block of threads, and keys beyond one.
  for (const auto& [operands, places] : std::vector<std::pair<std::string, int>>{
           {"t[5x1x4x6] t[5x1x2x6] t[5x1x2x6] t[5x7x2x6] t[5x7x2x6] i[5x1]", 7},
           {"t[2x3x2x40] t[2x3x2x40] t[2x3x2x40] t[2x9x2x40] t[2x9x2x40] i[2x3]", 9},
           {"t[1x1x3x300] t[1x1x1x300] t[1x1x1x300] t[1x290x1x300] t[1x290x1x300] i[1x1]", 290},
       }) {
    cases.push_back({"cached_attention", operands, {}, places});
    cases.push_back({"cached_attention", operands, {{"scale", 0.5}}, places});
  }
}

}  // namespace alpa
