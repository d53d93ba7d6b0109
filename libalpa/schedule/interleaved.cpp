// Interleaved 1F1B (Narayanan et al., "Megatron-LM", SC'21, section 2.2): mesh r of p has the stages r, p +
// r, 2 p + r, ... It takes as many micro-batches as there are meshes through one of them after the other, and
// alternates after 2 (p - r - 1) + (v - 1) p forwards, of v stages each. The bubble is v times shorter than
// that of 1F1B. Where the last group is not whole, its other micro-batches are left out of the order.
#include <algorithm>

#include "libalpa/schedule/orders.h"

namespace alpa {
namespace {

/// In groups of micro-batches, each group through all stages of the mesh.
std::vector<StageRun> grouped(SegmentKind kind, int mesh, int meshes, int stages_per_mesh,
                              int micro_batches) {
  std::vector<StageRun> runs;
  for (int first = 0; first < micro_batches; first += meshes)
    for (int i = 0; i < stages_per_mesh; ++i) {
      const int place = kind == SegmentKind::forward ? i : stages_per_mesh - 1 - i;
      for (int m = first; m < first + meshes; ++m)
        runs.push_back({kind, m, StageIndex(place * meshes + mesh)});
    }
  return runs;
}

}  // namespace

MeshOrders interleaved_orders(int meshes, int stages_per_mesh, int micro_batches) {
  MeshOrders orders;
  for (int mesh = 0; mesh < meshes; ++mesh) {
    const std::vector<StageRun> forwards = grouped(SegmentKind::forward, mesh, meshes, stages_per_mesh,
                                                   micro_batches),
                                backwards = grouped(SegmentKind::backward, mesh, meshes, stages_per_mesh,
                                                    micro_batches);
    const int before_turns = 2 * (meshes - mesh - 1) + (stages_per_mesh - 1) * meshes;
    const std::size_t lead = std::min(forwards.size(), static_cast<std::size_t>(before_turns) + 1);
    std::vector<StageRun>& order = orders.emplace_back(forwards.begin(), forwards.begin() + lead);
    for (std::size_t i = 0; i < backwards.size(); ++i) {
      order.push_back(backwards[i]);
      if (lead + i < forwards.size()) order.push_back(forwards[lead + i]);
    }
  }
  leave_out_from(micro_batches, orders);
  return orders;
}

}  // namespace alpa
