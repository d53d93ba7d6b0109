// Updates that devices share out by rows of parameters (GradientSync::owners).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "libalpa/planner/gradient_owners.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

struct OwnedCase {
  TinyCase plan;
  OwnerRule rule = OwnerRule::even;
  int parts = 0;  ///< where they are searched; 0: as many as devices
};

std::string owned_case_name(const testing::TestParamInfo<OwnedCase>& each) {
  std::string rule;
  for (const Word<OwnerRule>& word : owner_words())
    if (word.value == each.param.rule) rule = word.name;
  return each.param.plan.name() + (each.param.plan.gradient_clip == 0 ? "_unclipped_" : "_") + rule +
         (each.param.parts > 0 ? std::to_string(each.param.parts) : "");
}

TinyTraining owned(const OwnedCase& c) {
  TinyTraining training(c.plan);
  training.set_sync(with_owners(training.plan(), GraphUses(training.graph()), c.rule, c.parts));
  return training;
}

/// Of a GPT's table, which is embedding and head: the two sums of its gradient, or the one of what each
/// device adds up of its terms.
bool is_of_tied_weights(const TinyTraining& training, const GradientSync& sync) {
  const std::string& name = value_of(training.graph(), sync.sum).name;
  return name == "embedding.table.gradient" || name == "sum of gradients";
}

class OwnedUpdates : public testing::TestWithParam<OwnedCase> {};

// An element's sum over devices is the same wherever it is made, and so is what is made of it. Only the norm
// is added up in another order: to 1e-5 as sums of f32 anywhere, and an update that is clipped goes by it.
TEST_P(OwnedUpdates, TrainAsWhereEveryDeviceMakesThem) {
  const TinyTraining all(GetParam().plan), shared_out = owned(GetParam());
  ASSERT_TRUE(shared_out.plan().has_owners());
  const TinyCurve expected = all.run_on_threads(5), curve = shared_out.run_on_threads(5);
  const bool is_clipped = shared_out.options().gradient_clip > 0;
  for (std::size_t step = 0; step < curve.losses.size(); ++step) {
    EXPECT_NEAR(curve.losses[step], expected.losses[step],
                is_clipped ? 1e-5 * std::abs(expected.losses[step]) : 0)
        << step;
    EXPECT_NEAR(curve.norms[step], expected.norms[step], 1e-5 * expected.norms[step]) << step;
  }
  EXPECT_NEAR(curve.evaluation, expected.evaluation, is_clipped ? 1e-5 * std::abs(expected.evaluation) : 0);
  ASSERT_EQ(curve.states.size(), expected.states.size());
  for (const auto& [name, values] : expected.states) {
    const Values& mine = curve.states.at(name);
    EXPECT_TRUE(std::ranges::none_of(mine, [](double x) { return std::isnan(x); })) << name << " of nobody";
    if (!is_clipped) {
      EXPECT_EQ(mine, values) << name;
    }
  }
}

TEST_P(OwnedUpdates, HaveTheSameBitsInAnyOrderOfLanes) {
  TinyTraining training = owned(GetParam());
  expect_same_bits_in_any_order(training);
}

/// Plans whose stage has all of a GPT.
class OwnedTiedWeights : public testing::TestWithParam<OwnedCase> {
 protected:
  static std::vector<GradientSync> of_tied_weights(const TinyTraining& training) {
    std::vector<GradientSync> found = training.plan().sync;
    std::erase_if(found, [&](const GradientSync& sync) { return !is_of_tied_weights(training, sync); });
    return found;
  }
};

TEST_P(OwnedTiedWeights, HaveOneOwnerOfARowOfAllSums) {
  const std::vector<GradientSync> found = of_tied_weights(owned(GetParam()));
  ASSERT_FALSE(found.empty());
  for (const GradientSync& sync : found) {
    EXPECT_FALSE(sync.owners.empty());
    EXPECT_EQ(sync.owners, found.front().owners);
  }
}

/// Plans that bring both sums to owners, who add them up.
class OwnedSumsOfTiedWeights : public OwnedTiedWeights {};

// As where each goes by itself: buckets change no sum of an element.
TEST_P(OwnedSumsOfTiedWeights, MayBeInABucket) {
  const TinyTraining alone = owned(GetParam());
  ASSERT_EQ(of_tied_weights(alone).size(), 2u);
  TinyTraining together = owned(GetParam());
  std::vector<GradientSync> sync = together.plan().sync;
  for (GradientSync& each : sync) each.bucket = is_of_tied_weights(together, each) ? 0 : -1;
  together.set_sync(sync);
  EXPECT_EQ(together.run_on_threads(3).states, alone.run_on_threads(3).states);
}

std::vector<OwnedCase> tied_cases(const std::vector<int>& on) {
  std::vector<OwnedCase> cases;
  for (const Word<OwnerRule>& rule : owner_words())
    for (const int devices : on)
      if (rule.value != OwnerRule::none)
        cases.push_back({unclipped({"gpt", "data-parallel", devices, 1}), rule.value});
  cases.push_back({{"gpt", "data-parallel", 2, 2}, OwnerRule::parts});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Tied, OwnedTiedWeights, testing::ValuesIn(tied_cases({2, 4})), owned_case_name);
INSTANTIATE_TEST_SUITE_P(Tied, OwnedSumsOfTiedWeights, testing::ValuesIn(tied_cases({2})), owned_case_name);
INSTANTIATE_TEST_SUITE_P(Tied, OwnedUpdates, testing::ValuesIn(tied_cases({2, 4})), owned_case_name);
INSTANTIATE_TEST_SUITE_P(
    Plans, OwnedUpdates,
    testing::Values(OwnedCase{{"gpt", "data-parallel", 2, 1}, OwnerRule::first},
                    OwnedCase{unclipped({"gpt", "data-parallel", 4, 2}), OwnerRule::first},
                    OwnedCase{unclipped({"gpt", "data-parallel", 4, 2}), OwnerRule::balanced},
                    OwnedCase{unclipped({"gpt", "data-parallel", 4, 2}), OwnerRule::parts},
                    OwnedCase{unclipped({"gpt", "data-parallel", 2, 2}), OwnerRule::searched, 7},
                    OwnedCase{unclipped({"gpt", "data-parallel", 4, 2}), OwnerRule::searched, 3},
                    OwnedCase{{"gpt", "data-parallel", 4, 2}, OwnerRule::even},
                    OwnedCase{unclipped({"gpt", "data x tensor", 4, 2}), OwnerRule::even},
                    OwnedCase{{"gpt", "mixed", 4, 4}, OwnerRule::uneven},
                    OwnedCase{unclipped({"gpt", "data-parallel", 4, 2, "1f1b", Rematerialize::never,
                                         Precision::bf16}),
                              OwnerRule::even},
                    OwnedCase{unclipped({"wrn", "data-parallel", 2, 1}), OwnerRule::even},
                    OwnedCase{{"moe", "data-parallel", 2, 2}, OwnerRule::balanced}),
    owned_case_name);

}  // namespace
}  // namespace alpa
