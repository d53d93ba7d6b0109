// What curves of tiny trainings are held to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/trainer/tiny_training.h"

namespace alpa {

void expect_curve_of_one_device(const TinyTraining& training, const std::string& model) {
  const TinyTraining serial({model, "serial"});
  const TinyCurve curve = training.run_on_threads(5), reference = serial.run_on_threads(5);
  ASSERT_EQ(curve.losses.size(), reference.losses.size());
  for (std::size_t step = 0; step < curve.losses.size(); ++step) {
    EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * std::abs(reference.losses[step]));
    EXPECT_NEAR(curve.norms[step], reference.norms[step], 1e-5 * reference.norms[step]);
  }
}

void expect_same_bits_in_any_order(TinyTraining& training) {
  const TinyCurve listed = training.run_on_threads(3);
  EXPECT_EQ(training.run_on_threads(3).losses, listed.losses);
  EXPECT_EQ(training.run_on_threads(3, [] { return make_checked_cpu_device(1); }).losses, listed.losses);
  training.set_overlap(Overlap::all);
  EXPECT_EQ(training.run_on_threads(3).losses, listed.losses);
}

double rounding_error(const Graph& graph, DType type) {
  std::vector<int> roundings(graph.values.size());
  int longest = 0;
  for (const Node& node : graph.nodes) {
    int before = 0;
    for (const ValueIndex operand : node.operands) before = std::max(before, roundings[operand]);
    for (const ValueIndex result : node.results) {
      int& after = roundings[result];
      after = before + (value_of(graph, result).type.dtype == type ? 1 : 0);
      longest = std::max(longest, after);
    }
  }
  const int significant_bits = type == DType::f32 ? 24 : type == DType::f16 ? 11 : 8;
  return std::sqrt(3.0 * longest) * std::ldexp(1.0, -significant_bits);
}

}  // namespace alpa
