#include "libalpa/trainer/sample_order.h"

#include <gmock/gmock.h>

#include <set>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TrainingOptions options(std::int64_t batch, std::int64_t sequence, std::int64_t seed = 1) {
  TrainingOptions o;
  o.batch = batch;
  o.sequence = sequence;
  o.seed = seed;
  return o;
}

std::vector<std::int64_t> starts(const SampleOrder& order, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> result;
  for (std::int64_t k = first; k < first + count; ++k)
    result.push_back(order.window_start(Split::training, k));
  return result;
}

TEST(SampleOrder, EachEpochSeesEachTrainingWindowOnce) {
  // Sizes around powers of two and four, where the permutation has to walk most and least.
  for (const std::int64_t windows : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097}) {
    const SampleOrder order(windows * 10 + 1, options(1, 10), 0);
    ASSERT_EQ(order.windows(Split::training), windows);
    for (const std::int64_t epoch : {0, 1, 5}) {
      const auto seen = starts(order, epoch * windows, windows);
      const std::set<std::int64_t> distinct(seen.begin(), seen.end());
      EXPECT_EQ(static_cast<std::int64_t>(distinct.size()), windows);
      EXPECT_EQ(*distinct.begin(), 0);
      EXPECT_EQ(*distinct.rbegin(), (windows - 1) * 10);
    }
  }
}

TEST(SampleOrder, DiffersBetweenEpochsAndSeeds) {
  const SampleOrder order(100'001, options(8, 100), 0), other_seed(100'001, options(8, 100, 2), 0);
  EXPECT_NE(starts(order, 0, 1000), starts(order, 1000, 1000));
  EXPECT_NE(starts(order, 0, 1000), starts(other_seed, 0, 1000));
  EXPECT_EQ(starts(order, 0, 1000), starts(SampleOrder(100'001, options(16, 100), 0), 0, 1000));
}

TEST(SampleOrder, LeavesNoPattern) {
  const SampleOrder order(1'000'001, options(8, 100), 0);
  const auto seen = starts(order, 0, 10'000);
  // Of 10000 neighbours in a random permutation on average one is followed by its successor; the places where
  // the first half comes in the first half of the epoch are 2500 with standard deviation 25.
  int successors = 0, early = 0;
  for (std::size_t i = 0; i + 1 < seen.size(); ++i) {
    successors += seen[i + 1] == seen[i] + 100;
    early += i < 5000 && seen[i] < 500'000;
  }
  EXPECT_LE(successors, 8);
  EXPECT_NEAR(early, 2500, 125);
}

struct HoldOut {
  std::int64_t windows, batch;
  double fraction;
  std::int64_t held_out;
};

TEST(SampleOrder, HoldsOutTheEndOfTheData) {
  const HoldOut table[] = {
      {1000, 8, 0.05, 50}, {100, 8, 0.05, 8}, {16, 8, 0.05, 8}, {15, 8, 0.05, 1},
      {3, 8, 0.05, 0},     {1000, 8, 0, 0},   {4, 1, 0.99, 3},
  };
  for (const HoldOut& t : table) {
    const SampleOrder order(t.windows * 20 + 1, options(t.batch, 20), t.fraction);
    EXPECT_EQ(order.windows(Split::held_out), t.held_out) << t.windows;
    EXPECT_EQ(order.windows(Split::training), t.windows - t.held_out);
    for (const std::int64_t start : starts(order, 0, 3 * t.windows))
      EXPECT_LT(start, (t.windows - t.held_out) * 20);
  }
  const SampleOrder order(100 * 20 + 1, options(8, 20));
  EXPECT_EQ(order.window_start(Split::held_out, 0), 92 * 20);
  EXPECT_EQ(order.window_start(Split::held_out, 7), 99 * 20);
  EXPECT_EQ(order.window_start(Split::held_out, 8), 92 * 20);
}

TEST(SampleOrder, HoldsOutAllOfDataThatIsForEvaluation) {
  const SampleOrder order = SampleOrder::of_rows(4, options(8, 1), 1);
  EXPECT_EQ(order.windows(Split::training), 0);
  EXPECT_EQ(order.windows(Split::held_out), 4);
  EXPECT_EQ(order.window_start(Split::held_out, 0), 0);
}

TEST(SampleOrder, NeedsOneSampleAndTheTokenAfterIt) {
  EXPECT_EQ(SampleOrder(11, options(8, 10)).windows(Split::training), 1);
  EXPECT_THAT([] { SampleOrder(10, options(8, 10)); },
              ThrowsMessage<Error>(HasSubstr("the data has 10 tokens, and one sample needs 11")));
}

TEST(SampleOrder, HashDistinguishesBatches) {
  const SampleOrder order(100'001, options(8, 100));
  EXPECT_EQ(order.samples_hash(8, 8), SampleOrder(100'001, options(2, 100)).samples_hash(8, 8));
  EXPECT_NE(order.samples_hash(8, 8), order.samples_hash(16, 8));
  EXPECT_NE(order.samples_hash(8, 8), order.samples_hash(8, 9));
}

}  // namespace
}  // namespace alpa
