#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/solver/selection/dice.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// Draws sets of nodes that are worth choosing anew together. Borrows the network.
class Regions {
 public:
  Regions(const SelectionNetwork&, const std::vector<std::vector<int>>& incident);

  /// Up to `size` nodes that hang together, spread from a random one.
  std::vector<int> connected(int size, Dice&);

  /// Up to `size` nodes: some of those that hold memory at a time that is nearly full, and what lies around
  /// them. `free`: memory left per time point.
  std::vector<int> crowded(int size, const std::vector<std::int64_t>& free, Dice&);

 private:
  void spread(std::vector<int>& region, int size, double left_out, Dice&);

  const SelectionNetwork& network_;
  const std::vector<std::vector<int>>& incident_;
  std::vector<std::vector<int>> holders_;  // per block of time points, nodes with memory in it
  std::vector<char> is_member_;
};

}  // namespace alpa
