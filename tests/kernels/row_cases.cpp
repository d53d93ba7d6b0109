#include "tests/kernels/cases.h"

namespace alpa {

void add_row_cases(std::vector<OpCase>& cases) {
  const auto rows = [](std::int64_t count) { return Attributes{{"size_v", count}}; };
  const std::vector<OpCase> of_rows{
      {"distinct_rows", "t[2x7x5] i[2x7]", {}, 11},
      {"distinct_rows", "t[3x70x270] i[3x70]", {}, 23},
      {"distinct_rows", "t[1x301x5] i[1x301]", {}, 1000},
      {"embedding", "t[11x5] i[2x7]", {}, 11},
      {"embedding", "t[300x33] i[4x90]", {}, 300},
      {"embedding", "t[300x40] i[4x90]", {}, 300},
      {"embedding_grad", "t[2x7x5] i[2x7]", rows(11), 11},
      {"embedding_grad", "t[2x70x270] i[2x70]", rows(23), 23},
      {"embedding_grad", "t[3x301x5] i[3x301]", rows(11), 11},
      {"embedding_grad", "t[1x5x2100] i[1x5]", rows(3), 3},
      {"embedding_grad", "t[1x20x1608] i[1x20]", rows(11), 11},
      {"embedding_grad", "t[1x4200x8] i[1x4200]", rows(3), 3},
      {"embedding_grad", "t[2x30x8] i[2x30]", rows(1060), 1060},
  };
  cases.insert(cases.end(), of_rows.begin(), of_rows.end());
}

}  // namespace alpa
