#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "libalpa/plan/placement.h"

namespace alpa {

/// A plan whose stages have a mesh each, all of one shape, with its stages put on fewer of them.
inline Plan on_shared_meshes(Plan plan, const Graph& graph, const std::vector<int>& mesh_of_stage) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  std::map<std::pair<int, int>, Crossing> crossings;
  for (const Crossing& crossing : plan.crossings) {
    const int to_mesh = mesh_of_stage[crossing.to_mesh];  // a mesh was a stage
    const int from_stage = placement.stage_of_value(crossing.value);
    if (mesh_of_stage[from_stage] != to_mesh)
      crossings.insert(
          {{crossing.value, to_mesh}, {crossing.value, to_mesh, crossing.layout, crossing.in_segments}});
  }
  plan.crossings.clear();
  for (const auto& [what, crossing] : crossings) plan.crossings.push_back(crossing);
  std::vector<InputLayouts> inputs;
  for (InputLayouts input : plan.inputs) {
    input.mesh = mesh_of_stage[input.mesh];
    const auto same = [&](const InputLayouts& other) {
      return other.value == input.value && other.mesh == input.mesh;
    };
    if (std::ranges::none_of(inputs, same)) inputs.push_back(input);
  }
  plan.inputs = inputs;
  const int devices = device_count(plan.meshes[0].shape);
  plan.meshes.resize(static_cast<std::size_t>(1 + *std::ranges::max_element(mesh_of_stage)));
  for (std::size_t m = 0; m < plan.meshes.size(); ++m)
    plan.meshes[m].first_device = static_cast<int>(m) * devices;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) plan.stages[s].mesh = mesh_of_stage[s];
  return plan;
}

}  // namespace alpa
