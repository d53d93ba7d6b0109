#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

class TrainingByFactors : public testing::TestWithParam<TinyCase> {};

/// Products that are gradients of weights and are made by every device for all samples.
int made_of_factors(const TinyTraining& training) {
  const Graph& graph = training.graph();
  int count = 0;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = node_of(graph, n);
    if (node.phase != Phase::backward || std::string_view(node.op->name) != "einsum") continue;
    const Strategy& strategy = training.plan().node_strategy[n];
    count += std::ranges::all_of(strategy, [](int choice) { return choice == kIdleAxis; });
  }
  return count;
}

TEST_P(TrainingByFactors, HasTheLossesOfOneDevice) {
  const TinyTraining training(GetParam());
  EXPECT_GT(made_of_factors(training), 0);
  expect_curve_of_one_device(training, GetParam().model);
}

TEST_P(TrainingByFactors, HasTheSameBitsInAnyOrderOfLanes) {
  TinyTraining training(GetParam());
  expect_same_bits_in_any_order(training);
}

TinyCase by_factors(const std::string& model, int devices, int micro_batches) {
  TinyCase c{model, "poseidon", devices, micro_batches};
  c.wire_bound = true;
  return c;
}

INSTANTIATE_TEST_SUITE_P(Tiny, TrainingByFactors,
                         testing::Values(by_factors("image_mlp", 2, 1), by_factors("image_mlp", 4, 2),
                                         by_factors("image_mlp", 4, 1)),
                         [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace alpa
