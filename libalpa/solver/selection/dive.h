#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/message_passing.h"
#include "libalpa/solver/selection/neighbourhood_lane.h"

namespace alpa {

/// A node and a strategy that it must not take.
using Ban = std::pair<int, int>;

/// Looks for a cheap choice at given prices of memory, which has no limit here.
///
/// A dive fixes the nodes in steps, those first whose best strategy leads most, with sweeps of messages in
/// between. What keeps its result above the bound is often a single edge that the relaxation does not see:
/// so the strategies of the ends of the edges with most excess are banned, one at a time, and it dives again
/// (limited discrepancy search: Harvey and Ginsberg, 1995). Borrows the network.
class Dive {
 public:
  /// `messages`: of sweeps near these prices.
  Dive(const SelectionNetwork&, const std::vector<std::vector<int>>& incident, const MessagePassing& messages,
       const std::vector<double>& price);

  struct Found {
    std::vector<int> choice;
    double cost = infinity;  ///< memory paid for
    std::vector<Ban> bans;
  };

  /// One dive with these bans, then so many more bans as help, up to `most_bans`. `work` of a neighbourhood
  /// search follows each dive. At the deadline the best so far.
  Found run(std::vector<Ban> bans, int most_bans, double work, std::uint64_t seed, const Deadline&) const;

  /// Table and edge entries that a dive looks at, the neighbourhood search aside.
  double work() const;

 private:
  Found descend(std::vector<Ban> bans, double work, std::uint64_t seed, const Deadline&) const;
  std::vector<int> edges_with_most_excess(const std::vector<int>& choice, int count) const;

  const SelectionNetwork& network_;
  MessagePassing messages_;
  NeighbourhoodView view_;
  std::vector<std::vector<double>> cost_;  // memory paid for
  std::vector<DualSolution::Moved> moved_;
  double penalty_;  // more than any strategy can gain
};

}  // namespace alpa
