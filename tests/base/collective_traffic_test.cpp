#include "libalpa/base/collective_traffic.h"

#include <gmock/gmock.h>

#include <vector>

namespace alpa {
namespace {

constexpr double kMebibyte = 1 << 20;

TEST(CollectiveTraffic, OfAnAllReduceOnSeveralNodesLeavesANodeOnceEachWay) {
  // 8 nodes of 8: 7/8 of the tensor leave each node as sums of its own, and as much as results.
  const CollectiveTraffic sent = collective_traffic(CollectiveKind::all_reduce, {8, 8}, 64 * kMebibyte);
  EXPECT_EQ(sent, (CollectiveTraffic{112 * kMebibyte, 14 * kMebibyte, 2, 2}));
}

TEST(CollectiveTraffic, OfAnAllReduceIsThatOfItsHalves) {
  for (const GroupShape group : {GroupShape{1, 4}, {4, 1}, {4, 16}, {2, 2}}) {
    const CollectiveTraffic whole = collective_traffic(CollectiveKind::all_reduce, group, kMebibyte),
                            first = collective_traffic(CollectiveKind::reduce_scatter, group, kMebibyte),
                            second = collective_traffic(CollectiveKind::all_gather, group, kMebibyte);
    EXPECT_EQ(whole.within_node, first.within_node + second.within_node);
    EXPECT_EQ(whole.between_nodes, first.between_nodes + second.between_nodes);
  }
}

TEST(CollectiveTraffic, StaysOnOneNode) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
    for (const double bytes : {64.0, kMebibyte}) {
      const CollectiveTraffic sent = collective_traffic(kind, {1, 8}, bytes);
      EXPECT_EQ(sent.between_nodes, 0);
      EXPECT_EQ(sent.steps_between_nodes, 0);
      EXPECT_GT(sent.within_node, 0);
    }
}

TEST(CollectiveTraffic, OfScalarsTakesLogarithmicallyManySteps) {
  const CollectiveTraffic sent = collective_traffic(CollectiveKind::all_reduce, {5, 4}, 8);
  EXPECT_EQ(sent, (CollectiveTraffic{8 * 3 * 5, 8 * 4, 2, 3}));
}

TEST(CollectiveTraffic, OfAShiftLeavesANodeOnce) {
  EXPECT_EQ(collective_traffic(CollectiveKind::shift, {2, 4}, kMebibyte),
            (CollectiveTraffic{kMebibyte, kMebibyte / 4, 1, 1}));
  EXPECT_EQ(collective_traffic(CollectiveKind::send, {2, 1}, kMebibyte),
            (CollectiveTraffic{0, kMebibyte, 0, 1}));
}

TEST(OwnersTraffic, OfEqualPartsIsThatOfTheCollective) {
  for (const GroupShape group : {GroupShape{1, 4}, {4, 1}, {2, 2}, {2, 3}})
    for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
      const std::vector<double> parts(static_cast<std::size_t>(group.size()), kMebibyte);
      for (int rank = 0; rank < group.size(); ++rank)
        EXPECT_EQ(owners_traffic(kind, group, parts, rank),
                  collective_traffic(kind, group, kMebibyte * group.size()));
    }
}

TEST(OwnersTraffic, OfALoneOwnerIsAllForIt) {
  // Two nodes of three; rank 4, in the middle of the second, owns 6 bytes.
  const std::vector<double> parts{0, 0, 0, 0, 6, 0};
  const auto sent = [&](CollectiveKind kind, int rank) { return owners_traffic(kind, {2, 3}, parts, rank); };
  constexpr auto kReduce = CollectiveKind::reduce_scatter, kBroadcast = CollectiveKind::all_gather;
  EXPECT_EQ(sent(kReduce, 0), (CollectiveTraffic{6, 0, 1, 1}));  // to rank 1, which sends the node's sum
  EXPECT_EQ(sent(kReduce, 1), (CollectiveTraffic{0, 6, 1, 1}));
  EXPECT_EQ(sent(kReduce, 3), (CollectiveTraffic{6, 0, 1, 1}));
  EXPECT_EQ(sent(kReduce, 4), (CollectiveTraffic{0, 0, 1, 1}));
  EXPECT_EQ(sent(kBroadcast, 4), (CollectiveTraffic{12, 6, 1, 1}));
  EXPECT_EQ(sent(kBroadcast, 1), (CollectiveTraffic{12, 0, 1, 1}));  // passes it on to its node
  EXPECT_EQ(sent(kBroadcast, 0), (CollectiveTraffic{0, 0, 1, 1}));
}

// What the price of the fullest owner's bytes for every rank rests on.
TEST(OwnersTraffic, IsNoMoreForAnyInterfaceThanIfAllOwnedWhatTheFullestDoes) {
  const GroupShape group{3, 2};
  const std::vector<double> parts{10, 0, 70, 20, 30, 40};
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    const CollectiveTraffic most = collective_traffic(kind, group, 6 * 70);
    for (int rank = 0; rank < group.size(); ++rank) {
      EXPECT_LE(owners_traffic(kind, group, parts, rank).within_node, most.within_node);
      EXPECT_LE(owners_traffic(kind, group, parts, rank).between_nodes, most.between_nodes);
    }
  }
}

}  // namespace
}  // namespace alpa
