#include "libalpa/solver/selection/selection_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "libalpa/base/deadline.h"
#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/elimination.h"
#include "libalpa/solver/selection/local_search.h"
#include "libalpa/solver/selection/neighbourhood_search.h"
#include "libalpa/solver/selection/presolve.h"
#include "libalpa/solver/selection/prices.h"
#include "libalpa/solver/selection/selection_program.h"

namespace alpa {
namespace {

// What one unit of effort buys in each phase, so that the default of a million is a few seconds on a network
// of a thousand nodes.
constexpr std::int64_t price_work_per_effort = 1000, walk_work_per_effort = 2000;

// Up to here CBC is quicker than a search that cannot prove anything.
constexpr std::int64_t small_program_cells = 10'000;

// At least what any allowed choice costs above the constant. Costs are not negative.
double largest_cost(const SelectionNetwork& network) {
  const auto largest = [](const std::vector<double>& costs) {
    double most = 0;
    for (double cost : costs) most = std::isinf(cost) ? most : std::max(most, cost);
    return most;
  };
  double total = 0;
  for (const auto& node : network.nodes) total += largest(node.cost);
  for (const auto& edge : network.edges) total += largest(edge.cost);
  return total;
}

std::int64_t size_of(const SelectionNetwork& network) {
  std::int64_t size = network.edge_cells();
  for (const auto& node : network.nodes) size += std::ssize(node.cost);
  return size;
}

class NetworkSearch {
 public:
  NetworkSearch(const SelectionNetwork& given, const SelectionOptions& options)
      : given_(given), options_(options), deadline_(options.time_limit_s, options.stop) {
    solution_.bound = -infinity;
  }

  NetworkSolution run() {
    network_ = given_;
    if (!options_.start.empty() && fits(given_, options_.start))
      offer(options_.start, network_cost(given_, options_.start));
    search();
    solution_.hit_time_limit = deadline_.passed();
    return std::move(solution_);
  }

 private:
  bool done() const {
    const auto& best = solution_.incumbent;
    return deadline_.passed() || solution_.bound >= options_.cutoff ||
           (best.exists() && best.cost - solution_.bound <= options_.gap * std::abs(best.cost));
  }

  void search() {
    if (!reduce() || solve_without_memory()) return;
    constexpr int max_rounds = 4;
    for (int round = 0; round < max_rounds; ++round) {
      const auto cells = network_.edge_cells();
      if (!price(round) || done()) return;
      if (static_cast<double>(network_.edge_cells()) > 0.8 * static_cast<double>(cells)) break;
    }
    if (network_.edge_cells() > small_program_cells) walk(options_.effort * walk_work_per_effort, 2000, 1);
    if (!done() && network_.edge_cells() <= options_.most_cbc_cells) solve_program();
  }

  // Presolves the present network. False when that settles the search.
  bool reduce() {
    ReducedNetwork reduced = presolve(network_);
    if (reduced.verdict != ReducedNetwork::Verdict::open) {
      settle_infeasible();
      return false;
    }
    network_ = std::move(reduced.network);
    liftings_.push_back(std::move(reduced.lifting));
    raise_bound(network_.constant);
    if (!network_.nodes.empty()) return true;
    offer({}, network_.constant);
    return false;
  }

  // Nothing is left once strategies that cannot be in a choice that is wanted are gone.
  void settle_infeasible() {
    const double least = std::min(solution_.incumbent.cost, left_out_);
    if (least < infinity) {
      solution_.bound = least;
    } else {
      solution_.infeasible = true;
    }
  }

  void raise_bound(double bound) { solution_.bound = std::max(solution_.bound, std::min(bound, left_out_)); }

  // Choices that cost that or more are not looked for.
  double most_wanted() const { return std::min(solution_.incumbent.cost, options_.cutoff); }

  // What is left out from here on costs that at least.
  void leave_out_unwanted() {
    if (options_.cutoff < solution_.incumbent.cost) left_out_ = options_.cutoff;
  }

  std::vector<int> lifted(std::vector<int> choice) const {
    for (auto lifting = liftings_.rbegin(); lifting != liftings_.rend(); ++lifting)
      choice = lifting->lift(choice);
    return choice;
  }

  void offer(const std::vector<int>& choice, double cost) {
    if (cost < solution_.incumbent.cost) solution_.incumbent.offer(lifted(choice), cost);
  }

  // The incumbent in the strategies of the present network, when they still contain it.
  Incumbent present_incumbent() const {
    Incumbent incumbent;
    if (!solution_.incumbent.exists()) return incumbent;
    auto choice = solution_.incumbent.choice;
    for (const auto& lifting : liftings_) choice = lifting.project(choice);
    if (fits(network_, choice)) incumbent.offer(choice, network_cost(network_, choice));
    return incumbent;
  }

  // The bound without memory limits; true when a choice that reaches it fits.
  bool solve_without_memory() {
    const ReducedNetwork relaxed = presolve(without_memory(network_));
    if (relaxed.verdict != ReducedNetwork::Verdict::open) return settle_infeasible(), true;
    std::vector<int> nodes(relaxed.network.nodes.size()), choice(nodes.size(), 0);
    std::iota(nodes.begin(), nodes.end(), 0);
    const auto incident = incident_edges(relaxed.network);
    Elimination elimination(relaxed.network, incident, nodes, {.table_cells = 2e6, .total_work = 5e7});
    if (elimination.hubs().empty()) {
      std::vector<std::vector<double>> costs;
      for (const auto& node : relaxed.network.nodes) costs.push_back(node.cost);
      const double least = relaxed.network.constant + elimination.minimise(costs, choice);
      if (std::isinf(least)) return settle_infeasible(), true;
      return consider(relaxed.lifting.lift(choice), least, least);
    }
    if (network_.capacity.empty()) return false;
    SelectionOptions options = options_;
    options.effort /= 4;
    options.time_limit_s = deadline_.seconds_left();
    options.start.clear();  // it belongs to the network before presolve
    const NetworkSolution found = solve_network(relaxed.network, options);
    if (found.infeasible) return settle_infeasible(), true;
    if (found.incumbent.exists()) {
      return consider(relaxed.lifting.lift(found.incumbent.choice), found.incumbent.cost, found.bound);
    }
    raise_bound(found.bound);
    return false;
  }

  // Takes note of the bound, and of the choice if it fits. True when that closes the gap.
  bool consider(const std::vector<int>& choice, double cost, double bound) {
    raise_bound(bound);
    if (fits(network_, choice)) offer(choice, cost);
    return done();
  }

  // Prices memory, improves the incumbent, removes what the bound rules out. False when that settles the
  // search.
  bool price(int round) {
    Incumbent incumbent = present_incumbent();
    const PricedBound priced = find_prices(
        network_, incumbent,
        {.gap = options_.gap, .work = options_.effort * price_work_per_effort, .start = price_}, deadline_);
    raise_bound(priced.bound);
    price_ = priced.price;
    if (incumbent.exists()) offer(incumbent.choice, incumbent.cost);
    if (!solution_.incumbent.exists()) find_any_choice(priced.choice);
    if (done()) return true;
    walk(options_.effort * walk_work_per_effort / 8, 50 + static_cast<int>(network_.nodes.size()) / 2,
         100 + round);
    if (done() || priced.reduced_costs.empty()) return true;
    for (const double share : {0.01, 0.1, 1.0})
      if (!done()) search_near_bound(priced, share * options_.gap);
    if (done() || most_wanted() == infinity) return true;

    const double limit = most_wanted() + 1e-9 * std::abs(most_wanted());
    bool any = false;
    for (std::size_t i = 0; i < network_.nodes.size(); ++i) {
      auto& cost = network_.nodes[i].cost;
      for (std::size_t a = 0; a < cost.size(); ++a) {
        if (priced.reduction_bound + priced.reduced_costs[i][a] > limit) cost[a] = infinity, any = true;
      }
    }
    if (!any) return true;
    leave_out_unwanted();
    const auto before = price_;
    ReducedNetwork reduced = presolve(network_);
    if (reduced.verdict != ReducedNetwork::Verdict::open) return settle_infeasible(), false;
    price_.clear();
    for (int t : reduced.time_point) price_.push_back(before[t]);
    network_ = std::move(reduced.network);
    liftings_.push_back(std::move(reduced.lifting));
    if (!network_.nodes.empty()) return true;
    offer({}, network_.constant);
    raise_bound(network_.constant);
    return false;
  }

  // A choice within this gap of the bound has no strategy that the bound shows to cost more. Where few are
  // left, that choice is found, or there is none.
  void search_near_bound(const PricedBound& priced, double gap) {
    SelectionNetwork near = network_;
    const double most = std::max(gap, 1e-9) * std::abs(priced.reduction_bound);
    for (std::size_t i = 0; i < near.nodes.size(); ++i)
      for (std::size_t a = 0; a < near.nodes[i].cost.size(); ++a)
        if (priced.reduced_costs[i][a] > most) near.nodes[i].cost[a] = infinity;
    const ReducedNetwork reduced = presolve(near);
    if (reduced.verdict != ReducedNetwork::Verdict::open) return;
    if (reduced.network.nodes.empty()) return offer(reduced.lifting.lift({}), reduced.network.constant);
    if (size_of(reduced.network) > size_of(network_) / 4) return;  // which ends the recursion, too
    SelectionOptions options = options_;
    options.effort /= 4;
    options.time_limit_s = deadline_.seconds_left();
    options.start.clear();
    const NetworkSolution found = solve_network(reduced.network, options);
    if (found.incumbent.exists()) offer(reduced.lifting.lift(found.incumbent.choice), found.incumbent.cost);
  }

  // Where forbidden pairs keep the price search from any choice: they are allowed at a price beyond all
  // others, and searched away from.
  void find_any_choice(const std::vector<int>& start) {
    SelectionNetwork lenient = network_;
    const double penalty = 1 + largest_cost(network_);
    const auto allow = [&](double& cost) { cost = std::isinf(cost) ? penalty : cost; };
    for (auto& node : lenient.nodes) std::for_each(node.cost.begin(), node.cost.end(), allow);
    for (auto& edge : lenient.edges) std::for_each(edge.cost.begin(), edge.cost.end(), allow);
    const auto incident = incident_edges(lenient);
    LocalSearch local_search(lenient, incident);
    local_search.start_from(start);
    if (!local_search.repair(deadline_)) return;
    local_search.improve();
    Incumbent incumbent;
    incumbent.offer(local_search.choice(), network_cost(lenient, local_search.choice()));
    const double allowed = network_.constant + penalty * (1 - 1e-9);
    search_neighbourhoods(
        lenient, incumbent,
        {.price = price_, .work = options_.effort * walk_work_per_effort / 8, .target = allowed}, deadline_);
    if (incumbent.cost < allowed) offer(incumbent.choice, incumbent.cost);
  }

  void walk(std::int64_t work, int patience, std::uint64_t seed) {
    Incumbent incumbent = present_incumbent();
    if (!incumbent.exists()) return;
    const double target = solution_.bound + options_.gap * std::abs(solution_.bound);
    search_neighbourhoods(
        network_, incumbent,
        {.price = price_, .work = work, .patience = patience, .seed = seed, .target = target}, deadline_);
    offer(incumbent.choice, incumbent.cost);
  }

  void solve_program() {
    Incumbent incumbent = present_incumbent();
    const std::int64_t tree_nodes = options_.effort / std::max<std::int64_t>(500, network_.edge_cells() / 2);
    const int max_nodes = static_cast<int>(std::clamp<std::int64_t>(tree_nodes, 10, 1'000'000'000));
    leave_out_unwanted();
    const auto outcome = solve_as_integer_program(
        network_, incumbent, {.gap = options_.gap, .max_nodes = max_nodes, .cutoff = options_.cutoff},
        deadline_);
    if (outcome.infeasible) return settle_infeasible();
    if (incumbent.exists()) offer(incumbent.choice, incumbent.cost);
    raise_bound(outcome.bound);
  }

  const SelectionNetwork& given_;
  const SelectionOptions& options_;
  Deadline deadline_;
  NetworkSolution solution_;
  SelectionNetwork network_;       // what is left to solve
  std::vector<Lifting> liftings_;  // from network_ back to given_, last first
  std::vector<double> price_;      // per time point of network_
  double left_out_ = infinity;     // the least cost of a choice that is no longer in network_
};

}  // namespace

NetworkSolution solve_network(const SelectionNetwork& network, const SelectionOptions& options) {
  return NetworkSearch(network, options).run();
}

}  // namespace alpa
