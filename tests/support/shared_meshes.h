#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "libalpa/plan/placement.h"
#include "tests/support/index_literals.h"

namespace alpa {

/// A plan whose stages have a mesh each, all of one shape, with its stages put on fewer of them.
inline Plan on_shared_meshes(Plan plan, const Graph& graph, const std::vector<int>& mesh_of_stage) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  std::map<std::pair<int, MeshIndex>, PlannedTransfer> transfers;
  for (const PlannedTransfer& transfer : plan.transfers) {
    const MeshIndex to_mesh(mesh_of_stage[transfer.to_mesh]);  // a mesh was a stage
    const StageIndex from_stage = placement.stage_of_value(transfer.value);
    if (mesh_of_stage[from_stage] != to_mesh)
      transfers.insert(
          {{transfer.value, to_mesh}, {transfer.value, to_mesh, transfer.layout, transfer.in_segments}});
  }
  plan.transfers.clear();
  for (const auto& [what, transfer] : transfers) plan.transfers.push_back(transfer);
  std::vector<InputLayouts> inputs;
  for (InputLayouts input : plan.inputs) {
    input.mesh = MeshIndex(mesh_of_stage[input.mesh]);
    const auto same = [&](const InputLayouts& other) {
      return other.value == input.value && other.mesh == input.mesh;
    };
    if (std::ranges::none_of(inputs, same)) inputs.push_back(input);
  }
  plan.inputs = inputs;
  const int devices = device_count(plan.meshes[0_m].shape);
  plan.meshes.resize(static_cast<std::size_t>(1 + *std::ranges::max_element(mesh_of_stage)));
  for (const MeshIndex m : plan.meshes.indices()) plan.meshes[m].first_device = DeviceIndex(m * devices);
  for (const StageIndex s : plan.stages.indices()) plan.stages[s].mesh = MeshIndex(mesh_of_stage[s]);
  return plan;
}

}  // namespace alpa
