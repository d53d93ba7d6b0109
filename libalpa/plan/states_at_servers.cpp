#include "libalpa/plan/states_at_servers.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "libalpa/plan/owned_updates.h"

namespace alpa {
namespace {

/// Of its states, the first that no server could update; "": there is none.
std::string state_without_server(const Placement& placement) {
  const Graph& graph = placement.graph();
  const MeshIndex mesh(0);
  std::set<NodeIndex> updates;
  const Conversions conversions(placement.plan().cluster, placement.plan().meshes[mesh]);
  for (const OwnableUpdate& update : ownable_updates(placement, mesh, conversions))
    updates.insert(update.update);
  for (const ValueIndex v : graph.values.indices()) {
    const StateIndex state = placement.uses().state_after_value(v);
    const NodeIndex maker = value_of(graph, v).producer;
    if (state >= 0 && maker >= 0 && !updates.contains(maker)) return graph.states[state].name;
  }
  return "";
}

bool has_f16(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& value) { return value.type.dtype == DType::f16; });
}

}  // namespace

std::string unfit_for_servers(const Placement& placement) {
  const Plan& plan = placement.plan();
  if (plan.cluster.servers == 0) return "it has no servers";
  if (plan.cluster.kind == DeviceKind::cuda) return "servers are of CPU ranks alone";
  if (plan.meshes.size() != 1 || plan.stages.size() != 1) return "it has several stages";
  if (plan.devices() == 1) return "a device alone has nothing to share";
  if (plan.meshes[MeshIndex(0)].shape.size() != 1) return "its devices are not a mesh of one axis";
  if (plan.updates != UpdateOrder::after_norm) return "its updates do not end the step";
  const auto is_of_bucket = [](const GradientSync& sync) {
    return sync.bucket >= 0 || sync.turn != 0 || sync.parts != 1;
  };
  if (std::ranges::any_of(plan.sync, is_of_bucket))
    return "its sums of gradients have buckets, turns or parts";
  if (!plan.on_host.empty()) return "states rest in the host's memory";
  if (has_f16(placement.graph())) return "the scale of losses in f16 follows each step";
  const std::string state = state_without_server(placement);
  if (state.empty()) return "";
  return fmt::format(
      "'{}' is not updated by rows of a gradient that all devices add up (Adafactor, running averages, ZeRO, "
      "single numbers, gradients that are compressed, held back, or sent in another type)",
      state);
}

}  // namespace alpa
