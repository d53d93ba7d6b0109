#include "libalpa/planner/transfer_ways.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "libalpa/plan/placement.h"
#include "libalpa/sharding/transfer/transfer_price.h"

namespace alpa {
namespace {

/// The same between other nodes that are alike: many transfers of a pipeline are.
Transfer at_first_nodes(Transfer transfer, const Cluster& cluster) {
  if (!cluster.parts.empty()) return transfer;
  const int first = std::min<int>(transfer.from_mesh.first_device, transfer.to_mesh.first_device),
            moved = first - first % cluster.devices_per_node;
  transfer.from_mesh.first_device = DeviceIndex(transfer.from_mesh.first_device - moved);
  transfer.to_mesh.first_device = DeviceIndex(transfer.to_mesh.first_device - moved);
  return transfer;
}

}  // namespace

void choose_transfer_ways(Plan& plan, const Graph& graph, const CostModel& costs,
                          std::optional<TransferStrategy> only) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  std::vector<std::pair<Transfer, TransferWay>> known;
  for (PlannedTransfer& planned : plan.transfers) {
    Transfer transfer = at_first_nodes(placement.transfer(planned), costs.cluster());
    const auto found = std::ranges::find(known, transfer, &std::pair<Transfer, TransferWay>::first);
    if (found != known.end()) {
      planned.way = found->second;
      continue;
    }
    planned.way = fastest_way(transfer, costs, only);
    known.emplace_back(std::move(transfer), planned.way);
  }
}

}  // namespace alpa
