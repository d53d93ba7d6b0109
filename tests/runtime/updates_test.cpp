#include <gtest/gtest.h>

#include <algorithm>

#include "libalpa/plan/reduced_gradients.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

void expect_same(const TinyCurve& run, const TinyCurve& reference) {
  EXPECT_EQ(run.losses, reference.losses);
  EXPECT_EQ(run.norms, reference.norms);
  EXPECT_EQ(run.metrics, reference.metrics);
  EXPECT_EQ(run.evaluation, reference.evaluation);
  EXPECT_EQ(run.skipped_steps, reference.skipped_steps);
  ASSERT_EQ(run.states.size(), reference.states.size());
  for (const auto& [name, values] : reference.states) EXPECT_EQ(run.states.at(name), values) << name;
}

class UpdatesThatDoNotWait : public testing::TestWithParam<TinyCase> {};

// No norm is as large as that bound, so that both do the same with each number, only not at the same time.
TEST_P(UpdatesThatDoNotWait, ForTheNormAreThoseThatDo) {
  TinyCase unclipped = GetParam(), clipped = GetParam();
  unclipped.gradient_clip = 0;
  clipped.gradient_clip = 1e30;
  const TinyTraining without(unclipped), with(clipped);
  const TinyCurve run = without.run_on_threads(5), reference = with.run_on_threads(5);
  expect_same(run, reference);
  EXPECT_GT(run.norms[0], 0);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, UpdatesThatDoNotWait,
    testing::Values(TinyCase{"gpt", "serial"}, TinyCase{"gpt", "mixed", 4, 4},
                    TinyCase{"gpt", "mixed", 4, 4, "split-1f1b", Rematerialize::always, Precision::bf16},
                    TinyCase{"gpt", "zero-3", 4, 1}, TinyCase{"gpt", "inter-only", 4, 4, "eager-1f1b"},
                    TinyCase{"gpt", "v-shaped", 4, 4, "zero-bubble-v"}, TinyCase{"moe", "mixed", 4, 4},
                    TinyCase{"adafactor", "zero-3", 4, 1}, TinyCase{"wrn", "data-parallel", 2, 4}),
    [](const auto& each) { return each.param.name(); });

// Of five steps some clip and others do not.
class UpdatesBeforeTheNorm : public testing::TestWithParam<TinyCase> {
 protected:
  static TinyCase with(UpdateOrder order, std::optional<double> clip) {
    TinyCase c = GetParam();
    c.updates = order;
    if (clip) c.gradient_clip = clip;
    return c;
  }

  /// Which the norms of some steps exceed, also where those before were clipped.
  static double clip() {
    std::vector<double> norms = TinyTraining(with(UpdateOrder::after_norm, 1e30)).run_on_threads(5).norms;
    std::ranges::sort(norms);
    return norms[2];
  }
};

TEST_P(UpdatesBeforeTheNorm, AreThoseAfterItToTheBit) {
  const double clip = UpdatesBeforeTheNorm::clip();
  const TinyCurve after = TinyTraining(with(UpdateOrder::after_norm, clip)).run_on_threads(5);
  const TinyTraining early(with(UpdateOrder::before_norm, clip));
  EXPECT_EQ(early.plan().updates, UpdateOrder::before_norm);
  const TinyCurve before = early.run_on_threads(5);
  expect_same(before, after);
  EXPECT_EQ(after.corrected_steps, 0);
  EXPECT_GT(before.corrected_steps, 0);
  EXPECT_LT(before.corrected_steps, 5);
}

TEST_P(UpdatesBeforeTheNorm, AreThatInAnyOrderOfLanesToo) {
  const double clip = UpdatesBeforeTheNorm::clip();
  TinyTraining training(with(UpdateOrder::before_norm, clip));
  const TinyCurve listed = training.run_on_threads(5);
  expect_same(training.run_on_threads(5, [] { return make_checked_cpu_device(1); }), listed);
  for (const Overlap overlap : {Overlap::transfers, Overlap::all}) {
    training.set_overlap(overlap);
    expect_same(training.run_on_threads(5), listed);
  }
}

TEST_P(UpdatesBeforeTheNorm, AreMadeOnceWhereNothingIsClipped) {
  const TinyCurve before = TinyTraining(with(UpdateOrder::before_norm, 1e30)).run_on_threads(3);
  EXPECT_EQ(before.corrected_steps, 0);
  expect_same(before, TinyTraining(with(UpdateOrder::after_norm, 1e30)).run_on_threads(3));
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, UpdatesBeforeTheNorm,
    testing::Values(TinyCase{"gpt", "serial"}, TinyCase{"gpt", "inter-only", 4, 4},
                    TinyCase{"gpt", "mixed", 4, 4, "split-1f1b", Rematerialize::always, Precision::bf16},
                    TinyCase{"gpt", "zero-1", 4, 1}, TinyCase{"gpt", "zero-2", 4, 2},
                    TinyCase{"gpt", "zero-3", 4, 1}, TinyCase{"gpt", "v-shaped", 4, 4, "zero-bubble-v"},
                    TinyCase{"gpt", "interleaved", 4, 4, "interleaved"}, TinyCase{"moe", "mixed", 4, 4},
                    TinyCase{"adafactor", "zero-3", 4, 1}, TinyCase{"adafactor", "mixed", 4, 4},
                    TinyCase{"wrn", "inter-only", 2, 4}),
    [](const auto& each) { return each.param.name(); });

/// Without clipping, if not said otherwise.
TinyCase in_next_forward(TinyCase c, UpdateOrder order = UpdateOrder::next_forward, double clip = 0) {
  c.gradient_clip = clip;
  c.updates = order;
  return c;
}

/// What is done first is added up last.
std::vector<GradientSync> in_reverse(const TinyTraining& training) {
  const GraphUses uses(training.graph());
  const Plan& plan = training.plan();
  const Placement placement(plan, uses);
  std::vector<GradientSync> sync;
  for (const MeshIndex m : plan.meshes.indices()) {
    int turn = 1000;
    for (const ReducedGradient& sum :
         reduced_gradients(placement, m, Conversions(plan.cluster, plan.meshes[m])))
      sync.push_back({sum.sum, -1, turn--});
  }
  std::ranges::sort(sync, {}, &GradientSync::sum);
  return sync;
}

class UpdatesInTheNextForward : public testing::TestWithParam<TinyCase> {};

TEST_P(UpdatesInTheNextForward, AreThoseAtTheEndOfTheStepToTheBit) {
  const TinyCurve at_end =
      TinyTraining(in_next_forward(GetParam(), UpdateOrder::after_norm)).run_on_threads(5);
  TinyTraining training(in_next_forward(GetParam()));
  ASSERT_TRUE(training.program().defers_updates);
  expect_same(training.run_on_threads(5), at_end);
  // Lanes in any order, and steps that overlap each other.
  expect_same(training.run_on_threads(5, [] { return make_checked_cpu_device(1); }), at_end);
  for (const Overlap overlap : {Overlap::transfers, Overlap::all}) {
    training.set_overlap(overlap);
    expect_same(training.run_on_threads(5), at_end);
  }
  training.set_sync(in_reverse(training));
  expect_same(training.run_on_threads(5), at_end);
}

// Of five steps some clip and others do not.
TEST_P(UpdatesInTheNextForward, ClipAsThoseAtTheEndOfTheStepDo) {
  const auto norms = [&](double clip) {
    std::vector<double> all =
        TinyTraining(in_next_forward(GetParam(), UpdateOrder::after_norm, clip)).run_on_threads(5).norms;
    std::ranges::sort(all);
    return all;
  };
  const double clip = norms(1e30)[2];
  ASSERT_LT(norms(clip).front(), clip);
  ASSERT_GT(norms(clip).back(), clip);
  const TinyCurve at_end =
      TinyTraining(in_next_forward(GetParam(), UpdateOrder::after_norm, clip)).run_on_threads(5);
  TinyTraining training(in_next_forward(GetParam(), UpdateOrder::next_forward, clip));
  ASSERT_TRUE(training.program().defers_updates);
  expect_same(training.run_on_threads(5, [] { return make_checked_cpu_device(1); }), at_end);
  training.set_overlap(Overlap::all);
  expect_same(training.run_on_threads(5), at_end);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, UpdatesInTheNextForward,
    testing::Values(TinyCase{"gpt", "serial"}, TinyCase{"gpt", "data-parallel", 4, 1},
                    TinyCase{"gpt", "data-parallel", 2, 4}, TinyCase{"gpt", "zero-1", 4, 1},
                    TinyCase{"gpt", "zero-2", 4, 2}, TinyCase{"gpt", "zero-3", 4, 1},
                    TinyCase{"vit", "inter-only", 4, 4, "eager-1f1b"}, TinyCase{"vit", "mixed", 4, 4},
                    TinyCase{"llama", "mixed", 4, 4, "split-1f1b", Rematerialize::always, Precision::bf16},
                    TinyCase{"adafactor", "zero-3", 4, 1}, TinyCase{"wrn", "data-parallel", 2, 4},
                    TinyCase{"wrn", "inter-only", 2, 4}, TinyCase{"lstm", "inter-only", 2, 4, "zero-bubble"}),
    [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace alpa
