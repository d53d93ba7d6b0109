#include "libalpa/solver/selection/message_passing.h"

#include <gmock/gmock.h>

#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

// Messages are halved and added in floating point; costs here are below 1000.
constexpr double rounding = 1e-9;

TEST(MessagePassing, BoundsTheLeastCostFromBelowAndNeverFalls) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 7, .edges = 14});
    const auto network = selection_network(problem);
    const auto incident = incident_edges(network);
    MessagePassing messages(network, incident);
    const double least = *exhaustive_search(problem).cost;
    double before = -1e9;
    for (int k = 0; k < 10; ++k) {
      const double bound = messages.sweep(node_costs(network));
      EXPECT_LE(bound, least + rounding) << "seed " << seed;
      EXPECT_GE(bound, before - rounding) << "seed " << seed;
      before = bound;
    }
    EXPECT_GE(network_cost(network, messages.choice()), least) << "seed " << seed;
  }
}

TEST(MessagePassing, IsExactOnTrees) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    auto problem = random_problem(seed, {.nodes = 7, .strategies = 4, .edges = 0});
    for (int i = 1; i < 7; ++i) {
      const int parent = (i * 5 + static_cast<int>(seed)) % i;
      auto& edge = problem.edges.emplace_back();
      edge.from = parent, edge.to = i;
      for (std::size_t k = 0; k < problem.nodes[parent].cost.size() * problem.nodes[i].cost.size(); ++k) {
        edge.cost.push_back(static_cast<double>((k * 7 + seed * 3 + static_cast<std::size_t>(i)) % 11));
      }
    }
    const auto network = selection_network(problem);
    const auto incident = incident_edges(network);
    MessagePassing messages(network, incident);
    double bound = 0;
    for (int k = 0; k < 20; ++k) bound = messages.sweep(node_costs(network));
    EXPECT_NEAR(bound, *exhaustive_search(problem).cost, 1e-3)
        << "seed " << seed;  // approached geometrically
  }
}

// Rows of every length, whole vectors or not, and edges either way round.
TEST(MessagePassing, LooksAtAllPairsOfStrategies) {
  for (int rows = 1; rows < 20; ++rows)
    for (int columns = 1; columns < 20; ++columns)
      for (const bool is_turned : {false, true}) {
        SelectionProblem problem;
        problem.nodes.resize(2);
        for (int a = 0; a < rows; ++a) problem.nodes[0].cost.push_back((a * 5 + columns) % 7);
        for (int b = 0; b < columns; ++b) problem.nodes[1].cost.push_back((b * 3 + rows) % 5);
        auto& edge = problem.edges.emplace_back();
        edge.from = is_turned, edge.to = !is_turned;
        for (int k = 0; k < rows * columns; ++k) edge.cost.push_back(100 + (k * 37 + rows) % 101);
        const auto network = selection_network(problem);
        const auto incident = incident_edges(network);
        MessagePassing messages(network, incident);
        double bound = 0;
        for (int k = 0; k < 3; ++k) bound = messages.sweep(node_costs(network));
        EXPECT_NEAR(bound, *exhaustive_search(problem).cost, rounding) << rows << " x " << columns;
        EXPECT_NEAR(network_cost(network, messages.choice()), bound, rounding) << rows << " x " << columns;
      }
}

TEST(MessagePassing, ReducedCostsAreWhatAStrategyCostsAtLeast) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 6, .edges = 10});
    const auto network = selection_network(problem);
    const auto incident = incident_edges(network);
    MessagePassing messages(network, incident);
    double bound = 0;
    for (int k = 0; k < 5; ++k) bound = messages.sweep(node_costs(network));
    const auto reduced = messages.reduced_costs();
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
      for (std::size_t a = 0; a < problem.nodes[i].cost.size(); ++a) {
        auto forced = problem;
        for (std::size_t b = 0; b < forced.nodes[i].cost.size(); ++b) {
          if (b != a) forced.nodes[i].cost[b] = std::numeric_limits<double>::infinity();
        }
        EXPECT_LE(bound + reduced[i][a], *exhaustive_search(forced).cost + rounding) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace alpa
