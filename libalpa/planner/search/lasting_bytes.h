#pragma once
#include <string>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// What is there at once when a step's update begins, whatever the plan, of layers `first_layer` up to
/// `end_layer`: the states that they use, and the sums of their gradients. Whole, so that of n devices that
/// hold it between them one has an n-th at least. `total` is that of the three kinds. What rests on the host
/// (as of Plan) is left out.
MemoryUse lasting_bytes(const Graph&, int first_layer, int end_layer,
                        const std::vector<ValueIndex>& on_host = {});
MemoryUse lasting_bytes(const Graph&, const std::vector<ValueIndex>& on_host = {});  ///< of all layers

/// An n-th of each.
MemoryUse share_of(const MemoryUse&, int devices);

/// "parameters 1.55 GiB, the optimizer's states 9.31 GiB and sums of gradients 1.55 GiB"
std::string lasting_text(const MemoryUse&);

}  // namespace alpa
