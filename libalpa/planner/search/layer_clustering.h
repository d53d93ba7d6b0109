#pragma once
#include <vector>

#include "libalpa/graph/graph.h"

namespace alpa {

/// A chain of items that may be cut between any two.
struct Chain {
  std::vector<double> work;  ///< [item]
  std::vector<std::vector<double>>
      incoming_bytes;  ///< [first][end - 1]: bytes that items first .. end - 1 take of those before
};

/// The layers of a model as a chain: FLOPs of their forward, bytes of the values that cross.
Chain layer_chain(const Graph&);

/// Cuts a chain into `count` clusters of consecutive items (Alpa, OSDI'22, section 5.2): none has more than 1
/// + `imbalance` times its share of the work (or twice, four times ... that imbalance, where no such cut
/// exists); of these cuts, those where the most bytes that arrive at a cluster are least; of these, the one
/// with the most even work. Returns where the clusters begin, and the number of items at the end: {0, 4, 8,
/// 12} for three clusters of twelve equal items.
std::vector<int> cluster_chain(const Chain&, int count, double imbalance = 0.5);

}  // namespace alpa
