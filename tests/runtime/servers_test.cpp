// Ranks without a stage that help to add up (Cluster::servers).
#include <gtest/gtest.h>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

TinyCase serving(const std::string& model, const std::string& method, int nodes, int servers,
                 int micro_batches = 1) {
  TinyCase c{model, method, nodes, micro_batches};
  c.nodes = nodes;
  c.servers = servers;
  return c;
}

TinyCase without_servers(TinyCase c) {
  c.servers = 0;
  return c;
}

TinyCase in_next_forward(TinyCase c) {
  c.updates = UpdateOrder::next_forward;
  return c;
}

TinyCase before_norm(TinyCase c) {
  c.updates = UpdateOrder::before_norm;
  return c;
}

int served_sums(const Program& program) {
  int sums = 0;
  for (const Segment& segment : program.servers->segments)
    for (const Instruction& instruction : segment.instructions)
      sums += std::holds_alternative<Serve>(instruction.body) ? 1 : 0;
  return sums;
}

class ServedTraining : public testing::TestWithParam<TinyCase> {};

TEST_P(ServedTraining, HasTheBitsOfOneWithoutServers) {
  const TinyTraining training(GetParam()), alone(without_servers(GetParam()));
  ASSERT_EQ(training.plan().ranks(), training.plan().devices() + GetParam().servers);
  EXPECT_GT(served_sums(training.program()), 0);
  const TinyCurve curve = training.run_on_threads(5), reference = alone.run_on_threads(5);
  EXPECT_EQ(curve.losses, reference.losses);
  EXPECT_EQ(curve.norms, reference.norms);
  EXPECT_EQ(curve.states, reference.states);
  EXPECT_EQ(curve.evaluation, reference.evaluation);
}

TEST_P(ServedTraining, HasTheSameBitsInAnyOrderOfLanes) {
  TinyTraining training(GetParam());
  expect_same_bits_in_any_order(training);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, ServedTraining,
    testing::Values(serving("gpt", "data-parallel", 4, 1), serving("gpt", "data-parallel", 4, 2, 2),
                    serving("llama", "data-parallel", 2, 2), serving("wide", "data-parallel", 4, 4),
                    in_next_forward(serving("gpt", "data-parallel", 4, 1)),
                    before_norm(serving("gpt", "data-parallel", 4, 1)),
                    serving("bf16_wire", "data-parallel", 4, 2)),
    [](const auto& each) {
      return each.param.name() + (each.param.updates == UpdateOrder::next_forward  ? "_next_forward"
                                  : each.param.updates == UpdateOrder::before_norm ? "_before_norm"
                                                                                   : "");
    });

// A pipeline has no sum over all devices but those of scalars.
TEST(ServedTraining, OfStagesHasServersThatAddNothing) {
  TinyCase c = serving("gpt", "inter-only", 2, 1, 2);
  const TinyTraining training(c), alone(without_servers(c));
  EXPECT_EQ(served_sums(training.program()), 0);
  EXPECT_EQ(training.run_on_threads(3).losses, alone.run_on_threads(3).losses);
}

}  // namespace
}  // namespace alpa
