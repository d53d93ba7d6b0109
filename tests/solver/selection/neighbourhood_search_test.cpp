#include "libalpa/solver/selection/neighbourhood_search.h"

#include <gmock/gmock.h>

#include "libalpa/solver/selection/presolve.h"
#include "libalpa/solver/selection/prices.h"
#include "tests/solver/random_problem.h"

namespace alpa {
namespace {

TEST(SearchNeighbourhoods, OnlyEverImprovesAndStaysWithinMemory) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto problem = random_problem(seed, {.nodes = 30, .strategies = 5, .edges = 60, .memory = 0.4});
    const auto network = presolve(selection_network(problem)).network;
    if (network.nodes.empty()) continue;
    Incumbent incumbent;
    const auto priced = find_prices(network, incumbent, {.gap = 0, .work = 1, .start = {}}, Deadline(60));
    if (!incumbent.exists()) continue;
    const double before = incumbent.cost;
    Incumbent twin = incumbent;
    const NeighbourhoodOptions options{
        .price = priced.price, .work = 3'000'000, .patience = 50, .seed = 1, .target = 0};
    search_neighbourhoods(network, incumbent, options, Deadline(60));
    EXPECT_LE(incumbent.cost, before);
    EXPECT_TRUE(fits(network, incumbent.choice));
    EXPECT_NEAR(network_cost(network, incumbent.choice), incumbent.cost, 1e-9);
    search_neighbourhoods(network, twin, options, Deadline(60));
    EXPECT_EQ(twin.choice, incumbent.choice) << "equal seeds, equal searches";
  }
}

}  // namespace
}  // namespace alpa
