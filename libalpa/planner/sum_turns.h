#pragma once
#include <span>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {

/// In which order sums of gradients are added up that wait at the same time.
enum class SumOrder {
  ready,      ///< as the backward is done with them
  first_use,  ///< what the next forward uses first goes first (ByteScheduler's priority, without preemption)
};

/// As options and pins call them.
std::span<const Word<SumOrder>> sum_order_words();

/// A collective that waits.
struct WaitingSum {
  double ready_s = 0;  ///< when its gradients are there
  double seconds = 0;  ///< what it takes
  int first_use = 0;   ///< of those that wait the least goes first
};

/// [sum] its turn, from 1 on, where one goes after another: the first is the one that is there first;
/// whenever one is done, of those that are there by then that which is used first.
std::vector<int> turns_by_first_use(const std::vector<WaitingSum>&);

/// The first node of the forward, in the graph's order, that uses a parameter which this sum of gradients
/// updates; the number of nodes where there is none.
int first_use_after(const GraphUses&, ValueIndex sum);

}  // namespace alpa
