#include "libalpa/planner/transfer_ways.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "libalpa/plan/placement.h"
#include "libalpa/sharding/transfer/transfer_price.h"

namespace alpa {
namespace {

/// A rank of the host that computes in turn with its communication lets messages on between two instructions
/// only, and a receiver asks for two chunks at a time: each pair may wait for a long product.
constexpr int kMostChunksInTurn = 4, kMostChunks = 128;

}  // namespace

void choose_transfer_ways(Plan& plan, const Graph& graph, const CostModel& costs,
                          std::optional<TransferStrategy> only) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  const bool in_turn = plan.overlap == Overlap::none && plan.cluster.kind == DeviceKind::cpu;
  const int most_chunks = in_turn ? kMostChunksInTurn : kMostChunks;
  std::vector<std::pair<Transfer, TransferWay>> known;  // many transfers of a pipeline are alike
  for (PlannedTransfer& planned : plan.transfers) {
    const Transfer own = placement.transfer(planned);
    Transfer transfer = moved(own, -places_on(own, costs.cluster()));
    const auto found = std::ranges::find(known, transfer, &std::pair<Transfer, TransferWay>::first);
    if (found != known.end()) {
      planned.way = found->second;
      continue;
    }
    planned.way = fastest_way(transfer, costs, only, most_chunks);
    known.emplace_back(std::move(transfer), planned.way);
  }
}

}  // namespace alpa
