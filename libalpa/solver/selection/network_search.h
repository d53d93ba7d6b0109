#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libalpa/base/clock.h"
#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/lifting.h"
#include "libalpa/solver/selection/network_solution.h"
#include "libalpa/solver/selection/prices.h"
#include "libalpa/solver/selection/selection_network.h"
#include "libalpa/solver/selection/selection_problem.h"

namespace alpa {

/// What solve_network() does, and what it knows on the way.
class NetworkSearch {
 public:
  NetworkSearch(const SelectionNetwork& given, const SelectionOptions&);
  NetworkSolution run();

 private:
  bool done() const;
  void search();
  void search_small();
  /// Presolves the present network. False when that settles the search.
  bool reduce();
  /// Nothing is left once strategies that cannot be in a choice that is wanted are gone.
  void settle_infeasible();
  void raise_bound(double bound) { solution_.bound = std::max(solution_.bound, std::min(bound, left_out_)); }
  void raise_certified_bound(double bound);
  void report() const;
  /// Choices that cost that or more are not looked for.
  double most_wanted() const { return std::min(solution_.incumbent.cost, options_.cutoff); }
  /// What is left out from here on costs that at least.
  void leave_out_unwanted();

  std::vector<int> lifted(std::vector<int> choice) const;
  void offer(const std::vector<int>& choice, double cost) {
    if (cost < solution_.incumbent.cost) solution_.incumbent.offer(lifted(choice), cost);
  }
  /// The incumbent in the strategies of the present network, when they still contain it.
  Incumbent present_incumbent() const;

  /// The bound without memory limits; true when a choice that reaches it fits.
  bool solve_without_memory();
  /// By messages alone, where they may close the gap in a fraction of what elimination would take.
  bool solve_by_messages(double elimination_work);
  /// Takes note of the bound, and of the choice if it fits. True when that closes the gap.
  bool consider(const std::vector<int>& choice, double cost, double bound);
  /// Prices memory, improves the incumbent, removes what the bound rules out. False when that settles the
  /// search.
  bool price(int round);
  /// Strategies that raise the bound beyond what is wanted, as a share of all.
  double share_beyond(double bound, const std::vector<std::vector<double>>& reduced_costs) const;
  /// Takes them out and presolves. False when that settles the search.
  bool remove_beyond(double bound, const std::vector<std::vector<double>>& reduced_costs);
  void search_near_bound(const PricedBound&, double gap);
  void find_any_choice(const std::vector<int>& start);
  void walk(std::int64_t work, double patience, std::uint64_t seed);
  void solve_program();
  void certify_small();
  /// Until effort or time are spent.
  void search_on();
  bool search_network_on();

  const SelectionNetwork& given_;
  const SelectionOptions& options_;
  Deadline deadline_;
  double started_s_ = monotonic_s();
  std::int64_t effort_;  ///< of what does not go on until it is spent
  double work_left_;     ///< of search_on()
  NetworkSolution solution_;
  SelectionNetwork network_;       ///< what is left to solve
  std::vector<Lifting> liftings_;  ///< from network_ back to given_, last first
  std::vector<double> price_;      ///< per time point of network_
  double left_out_ = infinity;     ///< the least cost of a choice that is no longer in network_
  bool is_settled_ = false;        ///< nothing is left to look for
  bool is_exact_ = true;           ///< nothing that floating point decided was left out
};

}  // namespace alpa
