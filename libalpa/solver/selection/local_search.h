#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// A choice with the memory it leaves free, changed one node at a time. Borrows the network.
class LocalSearch {
 public:
  LocalSearch(const SelectionNetwork&, const std::vector<std::vector<int>>& incident);

  void start_from(std::vector<int> choice);
  const std::vector<int>& choice() const { return choice_; }
  const std::vector<std::int64_t>& free() const {
    return free_;
  }  ///< per time point, bytes; negative: over capacity
  bool fits() const;

  void set(int node, int strategy);

  /// Cost of each strategy of the node, its edges included, while its neighbours keep theirs.
  /// The span is valid until the next call.
  std::span<const double> strategy_costs(int node);

  /// Switches nodes until the choice fits: each time the switch that costs least per byte of relieved
  /// overload, among the nodes alive where the overload is largest. False when no single switch helps or the
  /// deadline passes; the choice is then somewhere on the way.
  bool repair(const Deadline&);
  /// The same by these nodes alone, in so many switches at most.
  bool repair(const Deadline&, std::span<const int> nodes, int most_switches);

  /// Switches single nodes to their cheapest strategy that fits, in order of index, until none gains.
  void improve();
  void improve(std::span<const int> nodes);

 private:
  struct Switch {
    double rate;  // cost per byte
    int node, strategy;
  };

  std::vector<Switch> promising_switches(int time, std::span<const int> nodes);
  double relief(int node, int strategy) const;

  const SelectionNetwork& network_;
  const std::vector<std::vector<int>>& incident_;
  std::vector<int> all_nodes_, choice_;
  std::vector<std::int64_t> free_;
  std::vector<double> costs_;
  std::vector<int> overloads_before_;  // per time point: how many earlier ones are over capacity
};

}  // namespace alpa
