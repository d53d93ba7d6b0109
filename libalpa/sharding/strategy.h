#pragma once
#include <vector>

#include "libalpa/graph/op.h"
#include "libalpa/sharding/ring.h"
#include "libalpa/sharding/sharding_spec.h"

namespace alpa {

/// What a mesh axis does for one node: splits a factor of its rule, or one of these.
constexpr int kIdleAxis = -1;         ///< every device along the axis does the same work
constexpr int kPassPartialAxis = -2;  ///< unreduced operands pass through a linear operator unreduced

/// One way to run a node on a mesh: [axis] -> factor index, kIdleAxis or kPassPartialAxis.
using Strategy = std::vector<int>;

/// What a strategy means for one node.
struct NodeLayout {
  std::vector<ShardingSpec> operands, results;
  std::vector<TensorType> local_operands, local_results;
  Attributes local_attributes;  ///< sizes of split factors divided
  Ring ring;
  Attributes
      remote_block_attributes;  ///< of rounds with blocks of other devices: the local ones and `visiting` = 1

  const Attributes& attributes_in(const RingRound& round) const {
    return round.hops == 0 ? local_attributes : remote_block_attributes;
  }
  OpCall local_call() const { return {local_operands, local_attributes}; }
  OpCall call_in(const RingRound& round) const { return {local_operands, attributes_in(round)}; }
};

/// A factor can be split unless it must stay whole or is an inner part of some dimension. At most one axis of
/// a strategy has a ring.
bool can_split(const ShardingRule&, int factor);

/// Every strategy that the operator's rule allows on this mesh, in a fixed order, all axes idle first.
/// There is no other source of strategies. (Alpa, OSDI'22, section 4.1, generalised from its tables.)
std::vector<Strategy> strategies(const OpDef&, const OpCall& whole, const MeshShape&);

NodeLayout layout_of(const OpDef&, const OpCall& whole, const Strategy&, const MeshShape&);

/// "b:0 k:1", "sum:1", "ring t:0", "whole" in words for explanations.
std::string strategy_text(const OpDef&, const OpCall& whole, const Strategy&);

}  // namespace alpa
