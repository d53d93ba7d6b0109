#include <gtest/gtest.h>

#include "libalpa/ops/catalog.h"
#include "tests/support/kernel_runner.h"

namespace alpa {
namespace {

/// The result of a routing operator on the logits of tokens, a row each.
Values routed(const std::string& op, const std::vector<Values>& tokens, const Attributes& attributes) {
  const auto experts = static_cast<std::int64_t>(tokens[0].size());
  KernelRun run;
  run.op = &op_catalog().find(op);
  run.operands = {{DType::f32, {1, static_cast<std::int64_t>(tokens.size()), experts}}};
  run.attributes = attributes;
  run.results = result_types(*run.op, {run.operands, attributes});
  Values logits;
  for (const Values& token : tokens) logits.insert(logits.end(), token.begin(), token.end());
  const auto device = make_cpu_device(1);
  return run_kernel(*device, run, std::vector<Values>{logits})[0];
}

Attributes best_two(std::int64_t capacity) { return {{"size_k", std::int64_t{2}}, {"capacity", capacity}}; }

// Three tokens want expert 0 first and one wants it second. Its two places go to the first two; the second
// choice comes after all first ones, whatever its token.
TEST(Routing, GivesPlacesToAllFirstChoicesBeforeTheSecondOnes) {
  const std::vector<Values> tokens{{1, 9, 0}, {9, 1, 0}, {9, 0, 1}, {9, 1, 0}};
  EXPECT_EQ(routed("top_k_slots", tokens, best_two(3)), (Values{3, -1, 0, 4, 1, 6, 2, 5}));
  EXPECT_EQ(routed("top_k_slots", tokens, best_two(2)), (Values{2, -1, 0, 3, 1, 4, -1, -1}));
}

TEST(Routing, TakesTheLowerOfTwoEqualExperts) {
  EXPECT_EQ(routed("top_k_slots", {{5, 5, 5}, {0, 7, 7}}, best_two(4)), (Values{0, 5, 4, 8}));
}

// Weights are of what was chosen, dropped or not: routing alone knows of capacity.
TEST(Routing, WeighsEqualExpertsAlike) {
  EXPECT_EQ(routed("top_k_weights", {{5, 5, 5}}, {{"size_k", std::int64_t{2}}}), (Values{0.5, 0.5}));
}

// All gates equal: every token has the loss 1 wherever first choices go. One expert takes all: almost e.
TEST(Routing, HasABalancingLossFromOneToTheNumberOfExperts) {
  EXPECT_EQ(routed("balance_loss", {{0, 0, 0, 0}, {0, 0, 0, 0}}, {}), (Values{1, 1}));
  for (const double loss : routed("balance_loss", {{90, 0, 0, 0}, {90, 0, 0, 0}}, {})) EXPECT_EQ(loss, 4);
}

}  // namespace
}  // namespace alpa
