#include <algorithm>
#include <cmath>
#include <utility>

#include "libalpa/solver/selection/local_search.h"
#include "libalpa/solver/selection/neighbourhood_search.h"
#include "libalpa/solver/selection/network_search.h"
#include "libalpa/solver/selection/presolve.h"
#include "libalpa/solver/selection/selection_search.h"

namespace alpa {
namespace {

constexpr std::int64_t escape_work_per_effort = 250;

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

}  // namespace

double NetworkSearch::share_beyond(double bound,
                                   const std::vector<std::vector<double>>& reduced_costs) const {
  const double limit = most_wanted() + 1e-9 * std::abs(most_wanted());
  std::size_t beyond = 0, all = 0;
  for (const auto& costs : reduced_costs) {
    all += costs.size();
    beyond += std::count_if(costs.begin(), costs.end(), [&](double more) { return bound + more > limit; });
  }
  return all == 0 ? 0 : static_cast<double>(beyond) / static_cast<double>(all);
}

bool NetworkSearch::remove_beyond(double bound, const std::vector<std::vector<double>>& reduced_costs) {
  const double limit = most_wanted() + 1e-9 * std::abs(most_wanted());
  for (std::size_t i = 0; i < network_.nodes.size(); ++i) {
    auto& cost = network_.nodes[i].cost;
    for (std::size_t a = 0; a < cost.size(); ++a)
      if (bound + reduced_costs[i][a] > limit) cost[a] = infinity;
  }
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
  raise_certified_bound(std::min(network_.constant, solution_.incumbent.cost));
  return false;
}

// A choice within this gap of the bound has no strategy that the bound shows to cost more. Where few are
// left, that choice is found, or there is none.
void NetworkSearch::search_near_bound(const PricedBound& priced, double gap) {
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
  options.progress = {};
  options.certify = false;
  options.effort = effort_ / 4;
  options.time_limit_s = deadline_.seconds_left();
  options.start.clear();
  const NetworkSolution found = solve_network(reduced.network, options);
  solution_.by_effort_alone = solution_.by_effort_alone && found.by_effort_alone;
  if (found.incumbent.exists()) offer(reduced.lifting.lift(found.incumbent.choice), found.incumbent.cost);
}

// Where forbidden pairs keep the price search from any choice: they are allowed at a price beyond all
// others, and searched away from.
void NetworkSearch::find_any_choice(const std::vector<int>& start) {
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
  search_neighbourhoods(lenient, incumbent,
                        {.price = price_, .work = effort_ * escape_work_per_effort, .target = allowed},
                        deadline_);
  if (incumbent.cost < allowed) offer(incumbent.choice, incumbent.cost);
}

}  // namespace alpa
