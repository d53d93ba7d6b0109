#include "libalpa/graph/fusion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "libalpa/device/device.h"
#include "tests/support/interpreter.h"
#include "tests/support/small_models.h"

namespace alpa {
namespace {

struct Sums {
  double loss, gradient_squares;
};

/// Of one micro-batch with small random weights.
Sums sums_of(const Graph& graph) {
  const std::unique_ptr<Device> device = make_cpu_device(1);
  Interpreter step(*device, graph);
  for (const State& state : graph.states) {
    const std::int64_t count = element_count(value_of(graph, state.value).type.shape);
    step.set(state.value, state.is_parameter ? uniform_values(count, -0.5, 0.5, 7)
                                             : Values(static_cast<std::size_t>(count), 0.0));
  }
  for (const Input& input : graph.inputs) {
    Values values(static_cast<std::size_t>(element_count(value_of(graph, input.value).type.shape)), 1.0);
    for (std::size_t i = 0; input.is_of_samples() && i < values.size(); ++i)
      values[i] = static_cast<double>(i * 7 % 32);
    step.set(input.value, values);
  }
  step.run_micro_batch(true, {});
  step.run_update({});
  return {step.get(graph.loss)[0], step.get(graph.gradient_square_sum)[0]};
}

TEST(FusedOperators, MeanWhatTheirPartsDo) {
  const Graph forward = testing_models::tiny_gpt_forward(2);
  const OpCatalog ops = op_catalog();
  const Sums apart = sums_of(training_graph(forward, ops, {}));
  const Sums fused =
      sums_of(with_fused_operators(training_graph(with_fused_operators(forward, ops), ops, {}), ops));
  // Sums of some hundred f32 terms in another order.
  EXPECT_NEAR(fused.loss / apart.loss, 1, 1e-5);
  EXPECT_NEAR(fused.gradient_squares / apart.gradient_squares, 1, 1e-4);
  EXPECT_GT(apart.gradient_squares, 0);
}

}  // namespace
}  // namespace alpa
