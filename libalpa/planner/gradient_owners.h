#pragma once
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/plan/plan.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {

/// Which device updates what of a parameter, where all along an axis would make the same update (a parameter
/// server's part, as AutoDist's strategy builders place it). A device of those that have the fewest bytes so
/// far is the first of them.
enum class OwnerRule {
  none,      ///< every device all of it
  first,     ///< the first device everything (AutoDist's PS)
  balanced,  ///< each parameter whole, at the device with the fewest bytes so far (PSLoadBalancing)
  parts,   ///< in the fewest equal parts, each there (PartitionedPS); whole where that were more than devices
  uneven,  ///< in the fewest parts that cannot be equal, each there (UnevenPartitionedPS)
  searched,  ///< in as many parts as is fastest for all parameters (Parallax), each there
  even,      ///< each bucket's bytes in shares as equal as rows allow, one after another
};

/// Of one parameter, where it is said or searched.
inline constexpr int kMostOwnerParts = 1024;

/// As options and pins call them.
std::span<const Word<OwnerRule>> owner_words();
OwnerRule find_owner_rule(const std::string& name);  ///< Throws Error(input) that lists them.

/// Plan::sync with owners by that rule for every update that can be shared out (plan/owned_updates.h).
/// A bucket of which some sums cannot have owners becomes two. `parts` of each parameter where they are
/// searched, no more than it has rows; 0: as many as devices.
std::vector<GradientSync> with_owners(const Plan&, const GraphUses&, OwnerRule, int parts = 0);

/// Plan::sync with the rows that each of the cluster's servers has of every update that can be shared out,
/// where they hold the states (Plan::staleness): small parameters whole where the fewest bytes are so far,
/// the rows of larger ones split evenly, give or take one.
std::vector<GradientSync> with_rows_at_servers(const Plan&, const GraphUses&);

/// Plan::sync with the owners that `planned`, of a plan with other layouts or buckets, has of the same sums,
/// as far as their updates can still be shared out.
std::vector<GradientSync> with_owners_of(const std::vector<GradientSync>& planned, const Plan&,
                                         const GraphUses&);

}  // namespace alpa
