#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/profile.h"

namespace alpa {

/// How one node's operators and collectives compare with those of the median node, of a profile that has
/// several.
struct NodeComparison {
  std::string node;
  int compared = 0;  ///< things that were timed on this node and on another one
  int slow = 0;      ///< of them: more than 10 % slower, and by more than its repetitions differ
  double typical = 1,
         worst = 1;         ///< time in times of the median node's: median over the things, and the most
  std::string worst_thing;  ///< a signature, or "all-reduce of 4.00 KiB over 2 nodes x 1"

  bool is_odd() const;  ///< typically more than 10 % slower
};

std::vector<NodeComparison> compare_nodes(const Profile&);

/// A title and a line per node: how many things were compared, how many were slower, typical and worst ratio,
/// "ODD", and the worst thing.
std::string comparison_table(const std::vector<NodeComparison>&);

}  // namespace alpa
