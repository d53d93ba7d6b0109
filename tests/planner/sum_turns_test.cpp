#include "libalpa/planner/sum_turns.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/support/small_plans.h"

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

// Layers in turn; the weights of each are used in the order of their nodes.
TEST(FirstUse, IsThatOfTheParameterWhichTheSumUpdates) {
  const Graph graph = testing_models::tiny_gpt(1);
  const GraphUses uses(graph);
  std::map<int, std::set<std::string>> of_use;
  for (const Node& node : graph.nodes)
    if (node.op->sums_micro_batches) {
      const int first = first_use_after(uses, node.results[0]);
      ASSERT_LT(first, static_cast<int>(graph.nodes.size())) << node.name;
      for (const ValueIndex operand : graph.nodes[NodeIndex(first)].operands)
        of_use[first].insert(value_of(graph, operand).name);
      const std::string parameter = value_of(graph, node.results[0]).name;
      EXPECT_TRUE(std::ranges::any_of(of_use[first], [&](const std::string& used) {
        return parameter.starts_with(used + ".gradient");
      })) << parameter;
    }
  EXPECT_GE(of_use.size(), 10u);
}

}  // namespace
}  // namespace alpa
