#include "tests/kernels/cases.h"

namespace alpa {

void add_low_rank_cases(std::vector<OpCase>& cases) {
  struct Case {
    Shape left, right;
    std::int64_t rank;
  };
  for (const auto& [left, right, rank] : std::vector<Case>{{{8}, {6}, 3},
                                                           {{4, 5}, {6}, 1},
                                                           {{3}, {4, 6}, 2},
                                                           {{130}, {90}, 4},
                                                           {{1100}, {40}, 9},
                                                           {{40}, {50}, 35}}) {
    Shape tensor = left, of_left = left, of_right = right;
    tensor.insert(tensor.end(), right.begin(), right.end());
    of_left.push_back(rank);
    of_right.push_back(rank);
    const auto f = [](const Shape& shape) { return " f" + type_text({DType::f32, shape}).substr(3); };
    const std::string g = f(tensor);
    const Attributes rows{{"rows", std::ssize(left)}},
        transposed{{"rows", std::ssize(left)}, {"transposed", std::int64_t{1}}};
    cases.push_back({"low_rank_product", g.substr(1) + g + f(of_right), rows});
    cases.push_back({"low_rank_product", g.substr(1) + g + f(of_left), transposed});
    cases.push_back({"orthonormal_columns", f(of_left).substr(1), {}});
    cases.push_back({"error_feedback", g.substr(1) + g + f(of_right) + f(of_left), rows});
    cases.push_back({"renewed_columns", f(of_right).substr(1) + f(of_right), {}});
  }
  for (const char* operands : {"t[3x5]", "t[17000]"}) cases.push_back({"held_back", operands, {}});
}

}  // namespace alpa
