#include "libalpa/plan/facts/binding.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/units.h"
#include "libalpa/cluster/cluster_parts.h"

namespace alpa {
namespace {

bool lies_on_several_nodes(const DeviceMesh& mesh, int devices_per_node) {
  for (std::size_t axis = 0; axis < mesh.shape.size(); ++axis)
    if (group_shape(mesh, static_cast<int>(axis), devices_per_node).nodes > 1) return true;
  return false;
}

/// Whether messages of these stages, which follow each other in a pipeline, go from node to node.
bool sends_between_nodes(const Plan& plan, const std::vector<StageIndex>& stages) {
  const auto is_elsewhere = [&](StageIndex a, StageIndex b) {
    const auto nodes = [&](StageIndex s) {
      const DeviceMesh& mesh = plan.mesh_of(s);
      const int last = mesh.first_device + device_count(mesh.shape) - 1;
      return std::pair(mesh.first_device / plan.cluster.devices_per_node,
                       last / plan.cluster.devices_per_node);
    };
    return nodes(a) != nodes(b);
  };
  return std::ranges::any_of(stages, [&](StageIndex s) {
    return (s > 0 && is_elsewhere(StageIndex(s - 1), s)) ||
           (s + 1 < std::ssize(plan.stages) && is_elsewhere(s, StageIndex(s + 1)));
  });
}

std::string part_text(const Binding& b) {
  const std::string nodes = b.crosses_nodes ? fmt::format(", some between nodes (NIC of {} for {}),",
                                                          rate_text(b.nic_bytes_per_s, "B/s"),
                                                          count_text(b.devices_per_nic, "device"))
                                            : "";
  switch (b.part) {
    case Binding::Part::compute:
      return "compute";
    case Binding::Part::collectives:
      return "collectives" + nodes;
    case Binding::Part::transfers:
      return "transfers between stages" + nodes;
    case Binding::Part::waiting:
      return "waiting for other stages";
  }
  return "";
}

}  // namespace

MeshTime mean_time(const Plan& plan) {
  MeshTime mean;
  const double devices = std::max(1, plan.devices());
  for (const MeshIndex m :
       indices_to<MeshIndex>(std::min(plan.meshes.size(), plan.prediction.meshes.size()))) {
    const double share = device_count(plan.meshes[m].shape) / devices;
    const MeshTime& time = plan.prediction.meshes[m];
    mean.compute_s += share * time.compute_s;
    mean.collective_s += share * time.collective_s;
    mean.transfer_s += share * time.transfer_s;
    mean.idle_s += share * time.idle_s;
  }
  return mean;
}

Binding binding_of(const Plan& plan) {
  Binding binding;
  const Indexed<MeshIndex, MeshPrediction>& meshes = plan.prediction.meshes;
  if (meshes.empty()) return binding;
  const MeshTime mean = mean_time(plan);
  const MeshIndex busiest = busiest_mesh(plan.prediction);
  const MeshTime& p = meshes[busiest];
  const Indexed<MeshIndex, std::vector<StageIndex>> stages = stages_of_meshes(plan);
  binding.part = p.compute_s >= std::max({p.collective_s, p.transfer_s, p.idle_s}) ? Binding::Part::compute
                 : p.collective_s >= std::max(p.transfer_s, p.idle_s) ? Binding::Part::collectives
                 : p.transfer_s >= p.idle_s                           ? Binding::Part::transfers
                                                                      : Binding::Part::waiting;
  binding.busiest = stages[busiest];
  binding.busiest_s = p.compute_s + p.collective_s + p.transfer_s;
  binding.mean_busy_s = mean.compute_s + mean.collective_s + mean.transfer_s;
  binding.crosses_nodes = binding.part == Binding::Part::transfers
                              ? sends_between_nodes(plan, stages[busiest])
                              : lies_on_several_nodes(plan.meshes[busiest], plan.cluster.devices_per_node);
  const Cluster nodes = cluster_under(plan.cluster, plan.meshes[busiest]);
  binding.devices_per_nic = nodes.devices_per_nic();
  binding.nic_bytes_per_s = nodes.between_nodes.bytes_per_s;
  constexpr double nearly_full = 0.9;
  for (const MeshIndex m : indices_to<MeshIndex>(std::min(meshes.size(), plan.meshes.size()))) {
    const std::int64_t there = cluster_under(plan.cluster, plan.meshes[m]).memory_bytes;
    const double used = static_cast<double>(meshes[m].memory.total) / static_cast<double>(there);
    binding.fullest = std::max(binding.fullest, used);
    for (const StageIndex s : stages[m]) {
      if (used >= nearly_full) binding.nearly_full.push_back(s);
      if (plan.stages[s].recomputed_layers > 0)
        (plan.stages[s].offloads() ? binding.offloads : binding.recomputes).push_back(s);
    }
  }
  std::ranges::sort(binding.nearly_full);
  std::ranges::sort(binding.recomputes);
  std::ranges::sort(binding.offloads);
  return binding;
}

std::string stage_numbers(const std::vector<StageIndex>& stages) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < stages.size();) {
    std::size_t last = i;
    while (last + 1 < stages.size() && stages[last + 1] == stages[last] + 1) ++last;
    runs.push_back(last == i ? fmt::format("{}", stages[i])
                             : fmt::format("{} to {}", stages[i], stages[last]));
    i = last + 1;
  }
  constexpr std::size_t most_named = 4;
  const auto end = runs.begin() + static_cast<std::ptrdiff_t>(std::min(runs.size(), most_named));
  return fmt::format("{}{}", fmt::join(runs.begin(), end, ", "),
                     runs.size() > most_named ? " and others" : "");
}

std::string stages_text(const std::vector<StageIndex>& stages) {
  return (stages.size() == 1 ? "stage " : "stages ") + stage_numbers(stages);
}

std::string binding_name(const Binding& b) {
  return fmt::format("{} on {}", part_text(b), stages_text(b.busiest));
}

}  // namespace alpa
