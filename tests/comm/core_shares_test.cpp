#include "libalpa/comm/core_shares.h"

#include <gmock/gmock.h>

#include <thread>

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Cores of their own, one after another.
CorePlace plain(int core) { return {0, core}; }

/// Four cores of two threads, which the system numbers 0 to 3 and 4 to 7.
CorePlace two_threads_each(int core) { return {0, core % 4}; }

/// Of all ranks.
std::vector<Cores> core_shares(const std::vector<Cores>& allowed,
                               const std::function<CorePlace(int core)>& place) {
  std::vector<Cores> shares;
  for (int rank = 0; rank < std::ssize(allowed); ++rank)
    shares.push_back(core_share(allowed, rank, place).own);
  return shares;
}

TEST(CoreShares, OfRanksThatMayRunOnTheSameCoresAreEven) {
  EXPECT_THAT(core_shares({{0, 1, 2, 3}, {0, 1, 2, 3}}, plain), ElementsAre(Cores{0, 1}, Cores{2, 3}));
  EXPECT_THAT(core_shares({{2, 5, 9}, {2, 5, 9}}, plain), ElementsAre(Cores{2}, Cores{5, 9}));
}

TEST(CoreShares, KeepTheThreadsOfACoreTogether) {
  const Cores all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(core_shares({all, all}, two_threads_each), ElementsAre(Cores{0, 1, 4, 5}, Cores{2, 3, 6, 7}));
}

TEST(CoreShares, OfARankWithCoresToItselfAreAllOfThem) {
  EXPECT_THAT(core_shares({{0, 1}}, plain), ElementsAre(Cores{0, 1}));
  EXPECT_THAT(core_shares({{0, 1}, {6, 7}, {2, 3}, {2, 3}}, plain),
              ElementsAre(Cores{0, 1}, Cores{6, 7}, Cores{2}, Cores{3}));
}

TEST(CoreShares, AreNoneWhereRanksAreMoreThanTheirCores) {
  EXPECT_THAT(core_shares({{0, 1}, {0, 1}, {0, 1}}, plain), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(CoreShares, AreNoneWhereRanksMayRunOnSomeOfEachOthersCores) {
  EXPECT_THAT(core_shares({{0, 1, 2}, {2, 3}, {4}}, plain), ElementsAre(IsEmpty(), IsEmpty(), Cores{4}));
}

TEST(CoreShares, SayHowFewAnyRankHas) {
  EXPECT_EQ(core_share({{0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}}, 1, plain).least, 3);
  EXPECT_EQ(core_share({{0, 1}, {2}, {3, 4}}, 0, plain).least, 1);
  EXPECT_EQ(core_share({{0, 1}, {2, 3}, {3, 4}}, 0, plain).least, 0);
}

TEST(CoreShares, HoldForAThreadAndThoseThatItStarts) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  const Cores last{cores_in(before).back()};
  std::thread([&] {
    keep_to(last);
    std::thread([&] {
      cpu_set_t set;
      sched_getaffinity(0, sizeof set, &set);
      EXPECT_EQ(cores_in(set), last);
    }).join();
  }).join();
}

}  // namespace
}  // namespace alpa
