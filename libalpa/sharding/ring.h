#pragma once
#include <vector>

#include "libalpa/cluster/mesh.h"
#include "libalpa/graph/sharding_rule.h"

namespace alpa {

/// One kernel call of a node whose blocks go round.
struct RingRound {
  int hops = 0;  ///< how often the blocks at hand have been passed on; 0: the device's own
  bool operands_arrive = false, results_arrive = false;  ///< passed on just before, from the device before
};

/// The devices along a mesh axis that pass blocks of a factor around (Factor::ring): keys and values of
/// attention (Ring Attention, ICLR'24). In each round a device takes the block at hand into its results.
/// Results that have the factor go round with the blocks they belong to, one step behind, and come home for
/// the last round; so operands and results travel n - 1 steps each, as in an all-gather and a reduce-scatter,
/// and never lie on a device as a whole.
struct Ring {
  int axis = -1;  ///< of the mesh; -1: nothing goes round
  int devices = 1;
  std::vector<int> operands, results;  ///< indices of those that have the factor

  bool exists() const { return axis >= 0; }
  std::vector<RingRound> rounds() const;  ///< one where there is no ring
};

/// The ring of a strategy, its axes' choices of factors.
Ring ring_of(const ShardingRule&, const std::vector<int>& strategy, const MeshShape&);

}  // namespace alpa
