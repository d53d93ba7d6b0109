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

/// What was found for a transfer.
struct KnownWay {
  Transfer transfer;
  std::optional<TransferStrategy> strategy;
  TransferWay way;
};

}  // namespace

void choose_transfer_ways(Plan& plan, const Graph& graph, const CostModel& costs,
                          const StageTransfers& only) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  const bool in_turn = plan.overlap == Overlap::none && plan.cluster.kind == DeviceKind::cpu;
  const int most_chunks = in_turn ? kMostChunksInTurn : kMostChunks;
  std::vector<KnownWay> all_known;  // many transfers of a pipeline are alike
  for (PlannedTransfer& planned : plan.transfers) {
    const Transfer own = placement.transfer(planned);
    Transfer transfer = moved(own, -places_on(own, costs.cluster()));
    const std::optional<TransferStrategy> strategy = only[placement.stage_of_value(planned.value)];
    const auto found = std::ranges::find_if(all_known, [&](const KnownWay& known) {
      return known.strategy == strategy && known.transfer == transfer;
    });
    if (found != all_known.end()) {
      planned.way = found->way;
      continue;
    }
    planned.way = fastest_way(transfer, costs, strategy, most_chunks);
    all_known.push_back({std::move(transfer), strategy, planned.way});
  }
}

}  // namespace alpa
