#include "libalpa/solver/selection/local_search.h"

#include <gmock/gmock.h>

#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

SelectionNetwork three_alike() {
  SelectionProblem problem;
  for (int i = 0; i < 3; ++i) problem.nodes.push_back({{1, 5}, {{0, 1, {10, 2}}}});
  problem.nodes[1].cost = {1, 3};
  problem.edges = {{0, 1, {0, 0, 0, 0}}};
  problem.memory_limit = 22;
  return selection_network(problem);
}

TEST(LocalSearch, RepairsByTheCheapestSwitchPerByte) {
  const auto network = three_alike();
  const auto incident = incident_edges(network);
  LocalSearch search(network, incident);
  search.start_from({0, 0, 0});
  EXPECT_FALSE(search.fits());
  EXPECT_TRUE(search.repair(Deadline(60)));
  EXPECT_EQ(search.choice(), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(search.free(), (std::vector<std::int64_t>{0}));
}

TEST(LocalSearch, ImprovesAsFarAsMemoryLasts) {
  const auto network = three_alike();
  const auto incident = incident_edges(network);
  LocalSearch search(network, incident);
  search.start_from({1, 1, 1});
  search.improve();
  EXPECT_EQ(search.choice(), (std::vector<int>{0, 0, 1}));
}

TEST(LocalSearch, SaysWhenNoSwitchHelps) {
  auto network = three_alike();
  network.capacity[0] = 5;
  const auto incident = incident_edges(network);
  LocalSearch search(network, incident);
  search.start_from({0, 0, 0});
  EXPECT_FALSE(search.repair(Deadline(60)));
}

TEST(LocalSearch, KeepsItsBooksStraight) {
  const auto network = selection_network(random_problem(4, {.nodes = 8, .edges = 12, .memory = 0.5}));
  const auto incident = incident_edges(network);
  LocalSearch search(network, incident);
  std::vector<int> choice(network.nodes.size(), 0);
  search.start_from(choice);
  for (int i = 0; i < 8; ++i) {
    choice[i] = network.strategies(i) - 1;
    const auto costs = search.strategy_costs(i);
    const double change = costs[choice[i]] - costs[0];
    const double before = network_cost(network, search.choice());
    search.set(i, choice[i]);
    EXPECT_EQ(network_cost(network, search.choice()), before + change);
    EXPECT_EQ(search.free(), free_memory(network, choice));
  }
}

}  // namespace
}  // namespace alpa
