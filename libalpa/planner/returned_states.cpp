#include "libalpa/planner/returned_states.h"

#include <algorithm>
#include <functional>

#include "libalpa/program/lower/lower.h"

namespace alpa {
namespace {

struct StateOnHost {
  ValueIndex value;
  std::int64_t bytes;  ///< of a device's tile
};

/// [mesh] The largest first.
Indexed<MeshIndex, std::vector<StateOnHost>> states_on_hosts(const Program& program) {
  Indexed<MeshIndex, std::vector<StateOnHost>> all;
  for (const MeshProgram& mesh : program.meshes) {
    std::vector<StateOnHost> states;
    for (const BufferIndex b : mesh.state_buffer)
      if (b >= 0 && mesh.buffers[b].space == MemorySpace::host)
        states.push_back({mesh.buffers[b].value, mesh.buffers[b].bytes});
    std::ranges::stable_sort(states, std::greater(), &StateOnHost::bytes);
    all.push_back(std::move(states));
  }
  return all;
}

/// Packing may take a little more than what is live: then so much less room is taken.
constexpr int kLeastRoom = 4;

}  // namespace

std::vector<ValueIndex> least_on_host(const Plan& given, const Graph& graph, const CostModel& costs) {
  Plan plan = given;
  Program program = lower(graph, plan);
  const auto room = [&](MeshIndex m) {
    return costs.on(plan.meshes[m]).cluster().memory_bytes - program.meshes[m].memory.total;
  };
  for (int part = 1; part <= kLeastRoom && !plan.on_host.empty();) {
    Plan fuller = plan;
    const auto states = states_on_hosts(program);
    for (const MeshIndex m : plan.meshes.indices()) {
      std::int64_t left = room(m) / part;
      for (const auto& [value, bytes] : states[m])
        if (bytes <= left) {
          left -= bytes;
          std::erase(fuller.on_host, value);
        }
    }
    if (fuller.on_host == plan.on_host) break;
    Program lowered = lower(graph, fuller);
    std::swap(program, lowered);
    if (std::ranges::all_of(plan.meshes.indices(), [&](MeshIndex m) { return room(m) >= 0; })) {
      plan = std::move(fuller);
    } else {
      std::swap(program, lowered);
      part *= 2;
    }
  }
  return plan.on_host;
}

}  // namespace alpa
