#include "libalpa/solver/selection/elimination.h"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

std::vector<int> all_nodes(const SelectionNetwork& network) {
  std::vector<int> nodes(network.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

TEST(Elimination, FindsTheLeastCost) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 7, .edges = 12, .forbidden = 0.1});
    const auto network = selection_network(problem);
    Elimination elimination(network, incident_edges(network), all_nodes(network), {});
    std::vector<int> choice(network.nodes.size(), 0);
    const double least = elimination.minimise(node_costs(network), choice);
    const auto expected = exhaustive_search(problem);
    ASSERT_EQ(least < 1e9, expected.cost.has_value()) << "seed " << seed;
    if (!expected.cost) continue;
    EXPECT_EQ(least, *expected.cost) << "seed " << seed;
    EXPECT_EQ(network_cost(network, choice), least) << "seed " << seed;
    EXPECT_TRUE(elimination.hubs().empty());
  }
}

TEST(Elimination, GivesEachStrategysLeastCost) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    auto problem = random_problem(seed, {.nodes = 6, .edges = 10, .forbidden = 0.1});
    if (!exhaustive_search(problem).cost) continue;
    const auto network = selection_network(problem);
    Elimination elimination(network, incident_edges(network), all_nodes(network), {});
    std::vector<int> choice(network.nodes.size(), 0);
    elimination.minimise(node_costs(network), choice);
    const auto marginals = elimination.min_marginals(node_costs(network));
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
      for (std::size_t a = 0; a < problem.nodes[i].cost.size(); ++a) {
        auto forced = problem;
        for (std::size_t b = 0; b < forced.nodes[i].cost.size(); ++b) {
          if (b != a) forced.nodes[i].cost[b] = std::numeric_limits<double>::infinity();
        }
        const auto expected = exhaustive_search(forced).cost;
        EXPECT_EQ(marginals[i][a], expected.value_or(std::numeric_limits<double>::infinity()))
            << "seed " << seed << ", node " << i << ", strategy " << a;
      }
    }
  }
}

TEST(Elimination, LeavesHubsOutWhereTablesWouldGrowTooLargeAndIsExactGivenThem) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    auto problem = random_problem(seed, {.nodes = 7, .strategies = 4, .edges = 25});
    const auto network = selection_network(problem);
    const auto incident = incident_edges(network);
    Elimination elimination(network, incident, all_nodes(network), {.table_cells = 4, .total_work = 1e6});
    std::vector<int> choice(network.nodes.size(), 0);
    std::vector<char> is_hub(network.nodes.size(), 0);
    for (int hub : elimination.hubs()) is_hub[hub] = 1;
    EXPECT_EQ(elimination.members().size() + elimination.hubs().size(), network.nodes.size());
    auto costs = node_costs(network);
    for (const auto& edge : network.edges) {
      if (is_hub[edge.from] && !is_hub[edge.to])
        add_edge_costs(network, edge, edge.to, choice[edge.from], costs[edge.to]);
      if (is_hub[edge.to] && !is_hub[edge.from])
        add_edge_costs(network, edge, edge.from, choice[edge.to], costs[edge.from]);
    }
    elimination.minimise(costs, choice);
    for (int hub : elimination.hubs()) {
      auto& cost = problem.nodes[hub].cost;
      for (std::size_t a = 1; a < cost.size(); ++a) cost[a] = std::numeric_limits<double>::infinity();
    }
    EXPECT_EQ(network_cost(network, choice), *exhaustive_search(problem).cost) << "seed " << seed;
  }
}

TEST(Elimination, AskedForAllOrNoneLeavesAllWhereOneIsAHub) {
  int with_hubs = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const auto network = selection_network(
        random_problem(seed, {.nodes = 7, .strategies = 4, .edges = static_cast<int>(seed)}));
    const auto eliminated = [&](bool all_or_none) {
      const Elimination elimination(network, incident_edges(network), all_nodes(network),
                                    {.table_cells = 16, .total_work = 1e6, .all_or_none = all_or_none});
      with_hubs += all_or_none && !elimination.hubs().empty();
      return std::pair(elimination.hubs().empty(), elimination.members());
    };
    const auto [is_all, members] = eliminated(false);
    EXPECT_EQ(eliminated(true), std::pair(is_all, is_all ? members : std::vector<int>())) << "seed " << seed;
  }
  EXPECT_GT(with_hubs, 5);
  EXPECT_LT(with_hubs, 35);
}

}  // namespace
}  // namespace alpa
