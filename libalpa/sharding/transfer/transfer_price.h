#pragma once
#include <optional>
#include <vector>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/sharding/transfer/transfer_route.h"

namespace alpa {

/// When the last message has arrived, where every device, within its node and between nodes, and every
/// network interface send one at a time and receive one at a time, in the order of the route. A message takes
/// as long as at the slower of its ends.
double transfer_seconds(const TransferRoute&, DType, const CostModel&);

/// No way is faster: what the interfaces of a node have to take in once, and what those that hold the tensor
/// have to send once.
double least_transfer_seconds(const Transfer&, const CostModel&);

/// The fastest way, of those of one strategy where that is given; of ways that are about as fast the
/// simplest.
TransferWay fastest_way(const Transfer&, const CostModel&, std::optional<TransferStrategy> = {},
                        int most_chunks = 128);

}  // namespace alpa
