#include "libalpa/solver/selection/selection_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "libalpa/solver/selection/elimination.h"
#include "libalpa/solver/selection/neighbourhood_search.h"
#include "libalpa/solver/selection/network_search.h"
#include "libalpa/solver/selection/presolve.h"
#include "libalpa/solver/selection/selection_program.h"

namespace alpa {
namespace {

// What one unit of effort buys in each phase, so that the default of a million is a few seconds on a network
// of a thousand nodes.
constexpr std::int64_t price_work_per_effort = 1000, walk_work_per_effort = 2000;

// Efforts beyond this go to the search that goes on.
constexpr std::int64_t most_effort_at_once = 1'000'000;

// Up to here CBC is quicker than a search that cannot prove anything.
constexpr std::int64_t small_program_cells = 10'000;

// From here on the search that goes on is all that there is time for.
constexpr std::int64_t large_cells = 200'000;

// A sweep looks at four entries per cell, so that messages look at 0.4 of elimination's at most. They close
// the gap of most layers in a few sweeps, of the others hardly ever.
constexpr double kSweepWork = 10, kFewestSweeps = 10, kMostSweeps = 40;

}  // namespace

NetworkSearch::NetworkSearch(const SelectionNetwork& given, const SelectionOptions& options)
    : given_(given),
      options_(options),
      deadline_(options.time_limit_s, options.stop),
      effort_(std::min(options.effort, most_effort_at_once)),
      work_left_(options.effort == kUnlimitedEffort
                     ? infinity
                     : static_cast<double>(options.effort - effort_) * walk_work_per_effort) {
  solution_.bound = -infinity;
}

NetworkSolution NetworkSearch::run() {
  network_ = given_;
  if (!options_.start.empty() && fits(given_, options_.start))
    offer(options_.start, network_cost(given_, options_.start));
  if (reduce()) search();
  report();
  solution_.hit_time_limit = deadline_.passed();
  solution_.by_effort_alone = solution_.by_effort_alone && !solution_.hit_time_limit;
  return std::move(solution_);
}

bool NetworkSearch::done() const {
  const auto& best = solution_.incumbent;
  if (deadline_.passed() || solution_.bound >= options_.cutoff) return true;
  const double gap =
      best.cost <= options_.enough ? std::max(options_.gap, options_.gap_of_enough) : options_.gap;
  return best.exists() && best.cost - solution_.bound <= gap * std::abs(best.cost);
}

void NetworkSearch::search() {
  const bool is_large = work_left_ > 0 && network_.edge_cells() > large_cells;
  if (!is_large) search_small();
  if (!is_settled_ && !network_.nodes.empty()) search_on();
}

void NetworkSearch::search_small() {
  if (options_.certify) certify_small();
  report();
  if (solve_without_memory()) return;
  constexpr int max_rounds = 4;
  for (int round = 0; round < max_rounds; ++round) {
    const auto cells = network_.edge_cells();
    if (!price(round) || done()) return;
    if (static_cast<double>(network_.edge_cells()) > 0.8 * static_cast<double>(cells)) break;
  }
  if (network_.edge_cells() > small_program_cells) walk(effort_ * walk_work_per_effort, 4e7, 1);
  if (!done() && network_.edge_cells() <= options_.most_cbc_cells) solve_program();
}

bool NetworkSearch::reduce() {
  ReducedNetwork reduced = presolve(network_);
  if (reduced.verdict != ReducedNetwork::Verdict::open) {
    settle_infeasible();
    return false;
  }
  network_ = std::move(reduced.network);
  liftings_.push_back(std::move(reduced.lifting));
  raise_bound(network_.constant);
  raise_certified_bound(network_.constant);
  if (!network_.nodes.empty()) return true;
  offer({}, network_.constant);
  return false;
}

void NetworkSearch::settle_infeasible() {
  is_settled_ = true;
  const double least = std::min(solution_.incumbent.cost, left_out_);
  if (least < infinity) {
    solution_.bound = least;
    raise_certified_bound(least);
  } else {
    solution_.infeasible = true;
  }
}

void NetworkSearch::raise_certified_bound(double bound) {
  if (is_exact_) solution_.certified_bound = std::max(solution_.certified_bound, std::min(bound, left_out_));
}

void NetworkSearch::report() const {
  if (options_.progress)
    options_.progress({monotonic_s() - started_s_, solution_.incumbent.cost,
                       options_.certify ? solution_.certified_bound : solution_.bound});
}

void NetworkSearch::leave_out_unwanted() {
  if (options_.cutoff < solution_.incumbent.cost) left_out_ = options_.cutoff;
}

std::vector<int> NetworkSearch::lifted(std::vector<int> choice) const {
  for (auto lifting = liftings_.rbegin(); lifting != liftings_.rend(); ++lifting)
    choice = lifting->lift(choice);
  return choice;
}

Incumbent NetworkSearch::present_incumbent() const {
  Incumbent incumbent;
  if (!solution_.incumbent.exists()) return incumbent;
  auto choice = solution_.incumbent.choice;
  for (const auto& lifting : liftings_) choice = lifting.project(choice);
  if (fits(network_, choice)) incumbent.offer(choice, network_cost(network_, choice));
  return incumbent;
}

bool NetworkSearch::solve_without_memory() {
  const bool is_without = network_.capacity.empty();  // and presolved
  const ReducedNetwork relaxed = is_without ? ReducedNetwork{} : presolve(without_memory(network_));
  if (relaxed.verdict != ReducedNetwork::Verdict::open) return settle_infeasible(), true;
  const SelectionNetwork& network = is_without ? network_ : relaxed.network;
  std::vector<int> nodes(network.nodes.size()), choice(nodes.size(), 0);
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto incident = incident_edges(network);
  Elimination elimination(network, incident, nodes,
                          {.table_cells = 2e6, .total_work = 5e7, .all_or_none = true});
  if (elimination.hubs().empty()) {
    if (is_without && solve_by_messages(elimination.work())) return true;
    std::vector<std::vector<double>> costs;
    for (const auto& node : network.nodes) costs.push_back(node.cost);
    const double least = network.constant + elimination.minimise(costs, choice);
    if (std::isinf(least)) return settle_infeasible(), true;
    return consider(is_without ? choice : relaxed.lifting.lift(choice), least, least);
  }
  if (is_without) return false;
  SelectionOptions options = options_;
  options.progress = {};
  options.certify = false;
  options.effort = effort_ / 4;
  options.time_limit_s = deadline_.seconds_left();
  options.start.clear();  // it belongs to the network before presolve
  const NetworkSolution found = solve_network(relaxed.network, options);
  solution_.by_effort_alone = solution_.by_effort_alone && found.by_effort_alone;
  if (found.infeasible) return settle_infeasible(), true;
  if (found.incumbent.exists()) {
    return consider(relaxed.lifting.lift(found.incumbent.choice), found.incumbent.cost, found.bound);
  }
  raise_bound(found.bound);
  return false;
}

bool NetworkSearch::solve_by_messages(double elimination_work) {
  const double cells = static_cast<double>(std::max<std::int64_t>(1, network_.edge_cells()));
  const double sweeps = elimination_work / (kSweepWork * cells);
  if (sweeps < kFewestSweeps) return false;
  Incumbent incumbent = present_incumbent();
  const PriceOptions options{
      .gap = options_.gap, .start = {}, .most_sweeps = static_cast<int>(std::min(sweeps, kMostSweeps))};
  const PricedBound found = find_prices(network_, incumbent, options, deadline_);
  raise_bound(found.bound);
  if (incumbent.exists()) offer(incumbent.choice, incumbent.cost);
  return done();
}

bool NetworkSearch::consider(const std::vector<int>& choice, double cost, double bound) {
  raise_bound(bound);
  if (fits(network_, choice)) offer(choice, cost);
  return done();
}

bool NetworkSearch::price(int round) {
  Incumbent incumbent = present_incumbent();
  const PricedBound priced =
      find_prices(network_, incumbent,
                  {.gap = options_.gap, .work = effort_ * price_work_per_effort, .start = price_}, deadline_);
  raise_bound(priced.bound);
  price_ = priced.price;
  if (incumbent.exists()) offer(incumbent.choice, incumbent.cost);
  if (!solution_.incumbent.exists()) find_any_choice(priced.choice);
  if (done()) return true;
  walk(effort_ * walk_work_per_effort / 8, 1e6 + 1e4 * static_cast<double>(network_.nodes.size()),
       100 + round);
  if (done() || priced.reduced_costs.empty()) return true;
  for (const double share : {0.01, 0.1, 1.0})
    if (!done()) search_near_bound(priced, share * options_.gap);
  if (done() || most_wanted() == infinity) return true;
  if (share_beyond(priced.reduction_bound, priced.reduced_costs) == 0) return true;
  is_exact_ = false;
  return remove_beyond(priced.reduction_bound, priced.reduced_costs);
}

void NetworkSearch::walk(std::int64_t work, double patience, std::uint64_t seed) {
  Incumbent incumbent = present_incumbent();
  if (!incumbent.exists()) return;
  const double target = solution_.bound + options_.gap * std::abs(solution_.bound);
  search_neighbourhoods(network_, incumbent,
                        {.price = price_, .work = work, .patience = patience, .seed = seed, .target = target},
                        deadline_);
  offer(incumbent.choice, incumbent.cost);
}

void NetworkSearch::solve_program() {
  Incumbent incumbent = present_incumbent();
  const std::int64_t tree_nodes = effort_ / std::max<std::int64_t>(500, network_.edge_cells() / 2);
  const int max_nodes = static_cast<int>(std::clamp<std::int64_t>(tree_nodes, 10, 1'000'000'000));
  leave_out_unwanted();
  const auto outcome = solve_as_integer_program(
      network_, incumbent, {.gap = options_.gap, .max_nodes = max_nodes, .cutoff = options_.cutoff},
      deadline_);
  is_exact_ = false;
  solution_.by_effort_alone = solution_.by_effort_alone && outcome.by_effort_alone;
  if (outcome.infeasible) return settle_infeasible();
  if (incumbent.exists()) offer(incumbent.choice, incumbent.cost);
  raise_bound(outcome.bound);
}

NetworkSolution solve_network(const SelectionNetwork& network, const SelectionOptions& options) {
  return NetworkSearch(network, options).run();
}

}  // namespace alpa
