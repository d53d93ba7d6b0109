#pragma once
#include <functional>
#include <string>

#include "libalpa/cluster/cost_kind.h"
#include "libalpa/cluster/profile.h"
#include "libalpa/program/program.h"
#include "libalpa/sharding/node_price.h"

namespace alpa::testing_models {

/// Interquartile range over median of the measurements of a kind.
using SpreadOfKind = std::function<double(const std::string& kind)>;

/// As if all that a program asks for had been measured, and had taken what the cluster's numbers say.
inline Profile measured_profile(const Program& program, const Cluster& cluster, const SpreadOfKind& spread) {
  const CostModel costs(cluster);
  Profile profile;
  profile.cluster = cluster;
  for (const MeshProgram& mesh : program.meshes)
    for (const Segment& segment : mesh.segments)
      for (const Instruction& instruction : segment.instructions) {
        const auto* compute = std::get_if<Compute>(&instruction.body);
        if (!compute) continue;
        std::vector<TensorType> operands;
        for (const BufferIndex b : compute->operands) operands.push_back(mesh.buffers[b].tile);
        const OpCall call{operands, compute->attributes};
        const std::string signature = signature_of(*compute->op, call);
        const double seconds = kernel_seconds(*compute->op, call, costs);
        profile.operators[signature] = {.median_s = seconds,
                                        .sample_spread_s = spread(cost_kind_of_operator(signature)) * seconds,
                                        .flops = flops_of(*compute->op, call),
                                        .bytes = static_cast<double>(bytes_moved_by(*compute->op, call))};
      }
  std::vector<GroupShape> groups;
  for (int nodes = 1; nodes <= cluster.nodes; nodes *= 2)
    for (int per_node = 1; per_node <= cluster.devices_per_node; per_node *= 2)
      if (nodes * per_node > 1) groups.push_back({nodes, per_node});
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::all_to_all, CollectiveKind::shift, CollectiveKind::send})
    for (const GroupShape group : groups) {
      if (kind == CollectiveKind::send && group.size() != 2) continue;
      for (std::int64_t bytes = 1 << 10; bytes <= 1 << 22; bytes *= 4) {
        const double seconds =
            kind == CollectiveKind::send
                ? costs.send_seconds(group.nodes == 1, static_cast<double>(bytes))
                : costs.collective_seconds(kind, group, static_cast<double>(bytes), cluster.devices_per_node);
        const double relative = spread(cost_kind_of_collective(kind, group.nodes > 1));
        profile.collectives.push_back({.kind = kind,
                                       .group = group,
                                       .bytes = bytes,
                                       .median_s = seconds,
                                       .sample_spread_s = relative * seconds});
      }
    }
  return profile;
}

}  // namespace alpa::testing_models
