#pragma once
#include <vector>

#include "libalpa/graph/graph.h"

namespace alpa {

/// What a factor of a node runs over, traced from the inputs through the rules.
enum class FactorRole { other, sample, sequence, expert };

/// [node]
std::vector<ShardingRule> node_rules(const Graph&);

/// Roles of the factors of every node: [node][factor of its rule]. Dimension 0 of the tokens is the sample,
/// dimension 1 the sequence; a factor that meets one of them in any operand has its role. Of a dimension of
/// several factors it is the outermost that is more than one: of a micro-batch of one group, its samples.
/// Experts are what a product of a parameter has in both operands and its result.
std::vector<std::vector<FactorRole>> factor_roles(const Graph&, const std::vector<ShardingRule>&);

}  // namespace alpa
