#include "libalpa/planner/sum_turns.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace alpa {
namespace {

using testing::ElementsAre;

TEST(TurnsByFirstUse, AreThoseInWhichGradientsAreThereWhereNoneWaits) {
  EXPECT_THAT(turns_by_first_use({{1, 0.5, 2}, {2, 0.5, 1}, {3, 0.5, 0}}), ElementsAre(1, 2, 3));
}

// The backward makes the gradients of the last layer first; the first one is used first.
TEST(TurnsByFirstUse, LetWhatIsUsedFirstGoBeforeWhatWaits) {
  const std::vector<WaitingSum> layers{{1, 3, 3}, {2, 3, 2}, {3, 3, 1}, {4, 3, 0}};
  EXPECT_THAT(turns_by_first_use(layers), ElementsAre(1, 4, 3, 2));
}

TEST(TurnsByFirstUse, WaitForWhatIsThereFirstNotForWhatIsUsedFirst) {
  EXPECT_THAT(turns_by_first_use({{5, 1, 0}, {1, 1, 1}, {1.5, 1, 2}}), ElementsAre(3, 1, 2));
}

// What a channel that looks around whenever it is free does: never idle while something waits, and nothing
// that is used earlier waits for what begins.
TEST(TurnsByFirstUse, OfRandomSumsNeverLetTheChannelRestOrTheFirstUsedWait) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<WaitingSum> sums(1 + random() % 12);
    for (WaitingSum& sum : sums)
      sum = {static_cast<double>(random() % 20), 1.0 + random() % 5, static_cast<int>(random() % 30)};
    const std::vector<int> turns = turns_by_first_use(sums);
    std::vector<std::size_t> in_order(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) in_order.at(static_cast<std::size_t>(turns[i]) - 1) = i;
    double free_s = 0;
    for (std::size_t place = 0; place < in_order.size(); ++place) {
      const WaitingSum& now = sums[in_order[place]];
      const double begin_s = std::max(free_s, now.ready_s);
      for (std::size_t later = place + 1; later < in_order.size(); ++later) {
        const WaitingSum& other = sums[in_order[later]];
        EXPECT_GE(std::max(free_s, other.ready_s), begin_s) << "could have begun before";
        if (other.ready_s <= begin_s) {
          EXPECT_GE(other.first_use, now.first_use);
        }
      }
      free_s = begin_s + now.seconds;
    }
  }
}

}  // namespace
}  // namespace alpa
