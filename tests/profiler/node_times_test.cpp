#include "libalpa/profiler/node_times.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Ten operators that take so many seconds on each of these nodes.
Profile profile_of(const std::vector<std::pair<std::string, double>>& nodes) {
  Profile profile;
  for (const auto& [name, seconds] : nodes) profile.nodes.push_back({name, 1e9, 1e9, 1e9});
  for (int i = 0; i < 10; ++i) {
    OperatorSample& sample = profile.operators["gelu f32[" + std::to_string(i) + "]"];
    for (const auto& [name, seconds] : nodes) sample.on_nodes.push_back({seconds, 0.01});
  }
  return profile;
}

TEST(NodeTimes, MarkTheNodeOnWhichThingsTypicallyTakeATenthLonger) {
  const auto nodes = compare_nodes(profile_of({{"a", 1}, {"b", 1.2}, {"c", 1}, {"d", 0.9}}));
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_FALSE(nodes[0].is_odd());
  EXPECT_TRUE(nodes[1].is_odd());
  EXPECT_EQ(nodes[1].slow, 10);
  EXPECT_DOUBLE_EQ(nodes[1].typical, 1.2);
  EXPECT_FALSE(nodes[3].is_odd());
}

TEST(NodeTimes, OfTwoNodesCompareTheSlowerWithTheFaster) {
  const auto nodes = compare_nodes(profile_of({{"a", 1}, {"b", 1.2}}));
  EXPECT_FALSE(nodes[0].is_odd());
  EXPECT_TRUE(nodes[1].is_odd());
}

TEST(NodeTimes, NameTheThingThatIsSlowWhereOthersAreNot) {
  Profile profile = profile_of({{"a", 1}, {"b", 1}});
  profile.operators["gelu f32[7]"].on_nodes[0].median_s = 2;
  profile.collectives = {{CollectiveKind::all_reduce, {2, 1}, 4096, 1, 0, 0, {{1, 0}, {3, 0}}}};
  const auto nodes = compare_nodes(profile);
  EXPECT_EQ(nodes[0].slow, 1);
  EXPECT_EQ(nodes[0].typical, 1);
  EXPECT_EQ(comparison_table(nodes),
            "operators and collectives, in times of the median node's:\n"
            "node  compared    slower  typical    worst\n"
            "a           11         1   1.00 x   2.00 x  gelu f32[7]\n"
            "b           11         1   1.00 x   3.00 x  all-reduce of 4.00 KiB over 2 nodes x 1\n");
}

TEST(NodeTimes, ThatDifferByLessThanTheirRepetitionsAreNotSlower) {
  Profile profile = profile_of({{"a", 1}, {"b", 1.2}});
  for (auto& [signature, sample] : profile.operators) sample.on_nodes[1].spread_s = 0.3;
  EXPECT_EQ(compare_nodes(profile)[1].slow, 0);
}

TEST(NodeTimes, OfThingsThatOneNodeAloneHasSayNothing) {
  Profile profile = profile_of({{"a", 1}, {"b", 0}});  // 0: not timed there
  EXPECT_EQ(compare_nodes(profile)[0].compared, 0);
  EXPECT_THAT(comparison_table(compare_nodes(profile)), Not(HasSubstr("ODD")));
}

}  // namespace
}  // namespace alpa
