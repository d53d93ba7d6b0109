#include "libalpa/sharding/node_price.h"

#include <algorithm>

namespace alpa {

double kernel_seconds(const OpDef& op, const OpCall& call, const CostModel& costs) {
  return costs.operator_seconds(
      signature_of(op, call),
      {flops_of(op, call), static_cast<double>(bytes_moved_by(op, call)), call.operands[0].dtype});
}

double shift_seconds(std::int64_t bytes, const DeviceMesh& mesh, int axis, const CostModel& costs) {
  const int per_node = costs.cluster().devices_per_node;
  return costs.collective_seconds(CollectiveKind::shift, group_shape(mesh, axis, per_node),
                                  static_cast<double>(bytes), devices_on_node(mesh.shape, per_node));
}

double owners_seconds(bool reduces, std::span<const std::int64_t> bytes, const DeviceMesh& mesh, int axis,
                      const CostModel& costs) {
  const int per_node = costs.cluster().devices_per_node;
  const std::int64_t all = std::ranges::max(bytes) * std::ssize(bytes);
  return costs.collective_seconds(reduces ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather,
                                  group_shape(mesh, axis, per_node), static_cast<double>(all),
                                  devices_on_node(mesh.shape, per_node));
}

}  // namespace alpa
