#include "libalpa/base/collective_traffic.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace alpa
