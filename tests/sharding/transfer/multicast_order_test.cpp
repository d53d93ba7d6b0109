#include "libalpa/sharding/transfer/multicast_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

/// No link serves two at a time, and each multicast is served once.
void expect_legal(const std::vector<Multicast>& multicasts, const std::vector<MulticastTurn>& turns) {
  ASSERT_EQ(turns.size(), multicasts.size());
  std::vector<int> served(multicasts.size());
  for (std::size_t a = 0; a < turns.size(); ++a) {
    ++served[turns[a].multicast];
    const MulticastSender& one = multicasts[turns[a].multicast][turns[a].sender];
    for (std::size_t b = 0; b < a; ++b) {
      const MulticastSender& other = multicasts[turns[b].multicast][turns[b].sender];
      EXPECT_LE(turns[b].start_s, turns[a].start_s);
      for (const int link : one.links)
        if (std::ranges::count(other.links, link) > 0) {
          EXPECT_GE(turns[a].start_s, turns[b].start_s + other.seconds - 1e-9);
        }
    }
  }
  EXPECT_EQ(std::ranges::count(served, 1), std::ssize(multicasts));
}

/// Every order with every sender.
double best_of_all(const std::vector<Multicast>& multicasts) {
  std::vector<int> order(multicasts.size());
  std::iota(order.begin(), order.end(), 0);
  double best_s = infinity;
  do {
    std::vector<std::size_t> senders(multicasts.size());
    for (bool more = true; more;) {
      std::vector<double> free(100);
      double end_s = 0;
      for (const int m : order) {
        const MulticastSender& sender = multicasts[m][senders[m]];
        double start_s = 0;
        for (const int link : sender.links) start_s = std::max(start_s, free[link]);
        for (const int link : sender.links) free[link] = start_s + sender.seconds;
        end_s = std::max(end_s, start_s + sender.seconds);
      }
      best_s = std::min(best_s, end_s);
      more = false;
      for (std::size_t m = 0; m < senders.size() && !more; ++m) {
        more = ++senders[m] < multicasts[m].size();
        if (!more) senders[m] = 0;
      }
    }
  } while (std::ranges::next_permutation(order).found);
  return best_s;
}

TEST(MulticastOrder, OfFewIsTheBestOfAll) {
  std::mt19937 random(7);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  int better_than_balanced = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<Multicast> multicasts(static_cast<std::size_t>(2 + draw(4)));
    for (Multicast& multicast : multicasts) {
      const int receivers = 1 + draw(7);  // bits
      const double seconds = 1 + draw(3);
      for (int sender = 0; sender < 1 + draw(2); ++sender) {
        multicast.push_back({{draw(3)}, seconds});
        for (int bit = 0; bit < 3; ++bit)
          if (receivers >> bit & 1) multicast.back().links.push_back(3 + bit);
      }
    }
    const double best_s = best_of_all(multicasts);
    const auto turns = multicast_order(multicasts, MulticastSearch::order);
    expect_legal(multicasts, turns);
    EXPECT_DOUBLE_EQ(multicast_seconds(multicasts, turns), best_s);
    EXPECT_LE(multicast_bound(multicasts), best_s * (1 + 1e-12));
    const auto balanced = multicast_order(multicasts, MulticastSearch::balanced);
    expect_legal(multicasts, balanced);
    better_than_balanced += multicast_seconds(multicasts, balanced) > best_s;
  }
  EXPECT_GT(better_than_balanced, 5);
}

TEST(MulticastOrder, OfManyFillsAllLinks) {
  // Each of 24 sends something to each of 24 others: a Latin square is as long as one has to send.
  std::vector<Multicast> multicasts;
  for (int to = 0; to < 24; ++to)
    for (int from = 0; from < 24; ++from) multicasts.push_back({{{from, 24 + to}, 1}});
  const auto turns = multicast_order(multicasts, MulticastSearch::order);
  expect_legal(multicasts, turns);
  EXPECT_EQ(multicast_bound(multicasts), 24);
  EXPECT_LE(multicast_seconds(multicasts, turns), 30);
  EXPECT_GT(multicast_seconds(multicasts, multicast_order(multicasts, MulticastSearch::none)), 40);
}

TEST(MulticastOrder, IsTheSameEveryTime) {
  std::vector<Multicast> multicasts;
  for (int m = 0; m < 40; ++m)
    multicasts.push_back({{{m % 5, 5 + m % 7}, 1.0 + m % 3}, {{(m + 1) % 5, 5 + m % 7}, 1.0 + m % 3}});
  EXPECT_EQ(multicast_order(multicasts, MulticastSearch::order),
            multicast_order(multicasts, MulticastSearch::order));
}

TEST(MulticastOrder, OfWhatTakesNoLinkIsAnyOrder) {
  EXPECT_EQ(multicast_order({}, MulticastSearch::order).size(), 0u);
  EXPECT_EQ(multicast_order({{{{}, 0}}, {{{}, 0}}}, MulticastSearch::order).size(), 2u);
}

}  // namespace
}  // namespace alpa
