#include "libalpa/planner/states_at_servers.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/states_at_servers.h"
#include "libalpa/planner/gradient_owners.h"
#include "libalpa/planner/predict.h"
#include "libalpa/program/lower/lower.h"

namespace alpa {
namespace {

constexpr const char* kMethod = "data-parallel";

[[noreturn]] void refuse(int staleness, const std::string& why, const char* hint) {
  throw Error(ErrorKind::usage, fmt::format("--staleness {}: {}", staleness, why), hint);
}

/// Of a rank with that program. Messages are in the memory of hosts, which is that of CPUs.
void check_memory(const MeshProgram& program, const char* whose, const Cluster& cluster, int staleness) {
  const std::int64_t bytes = program.memory.total + program.memory.host;
  if (bytes <= cluster.memory_bytes) return;
  throw Error(
      ErrorKind::infeasible,
      fmt::format("--staleness {}: {} takes {} ({} of it for messages), {} is there", staleness, whose,
                  bytes_text(bytes), bytes_text(program.memory.host), bytes_text(cluster.memory_bytes)),
      "more --servers, a smaller --staleness, or more memory in the cluster");
}

}  // namespace

PlannerOptions for_states_at_servers(PlannerOptions options) {
  if (options.staleness < 0) return options;
  const PlannerOptions unsaid;
  const auto only = [&](const char* name, std::string& option, const std::string& if_unsaid,
                        const std::string& value) {
    if (option != if_unsaid && option != value)
      refuse(options.staleness,
             fmt::format("together with --{} {}, where servers make the updates of a plan with {}", name,
                         option, value),
             "one of the two without the other");
    option = value;
  };
  if (options.servers == 0)
    refuse(options.staleness, "without --servers, which hold the optimizer's states then",
           "--servers 1 or more");
  if (!options.preset.empty())
    refuse(options.staleness, fmt::format("together with --preset {}", options.preset),
           "one of the two without the other");
  if (!options.constraints.empty())
    refuse(options.staleness, "together with --constraints, as there is no search",
           "one of the two without the other");
  if (options.pin) refuse(options.staleness, "together with --pin", "one of the two without the other");
  only("method", options.method, unsaid.method, kMethod);
  only("updates", options.updates, unsaid.updates, unsaid.updates);
  only("owners", options.owners, unsaid.owners, kNoOwners);
  only("offload", options.offload, unsaid.offload, kNoOffload);
  only("sync", options.sync, unsaid.sync, "each");
  only("sync-order", options.sync_order, unsaid.sync_order, "ready");
  // Messages of earlier steps are on their way while a step computes.
  if (options.staleness > 0 && options.overlap == unsaid.overlap)
    options.overlap = overlap_name(Overlap::all);
  options.mesh_axes = 1;
  options.compare_with_search = false;
  return options;
}

void hold_states_at_servers(Plan& plan, const Graph& graph, const CostModel& costs, int staleness) {
  const GraphUses uses(graph);
  const std::string unfit = unfit_for_servers(Placement(plan, uses));
  const char* const hint = "a model whose devices share nothing but gradients, or a plan without --staleness";
  if (!unfit.empty()) refuse(staleness, "servers cannot hold the states of this plan: " + unfit, hint);
  plan.staleness = staleness;
  plan.sync = with_rows_at_servers(plan, uses);
  const Program program = lower(graph, plan);
  if (program.meshes.front().keeps_step())
    refuse(staleness, "devices exchange more than gradients in a step, so none can be ahead of another",
           hint);
  check_memory(program.meshes.front(), "a device", plan.cluster, staleness);
  check_memory(*program.servers, "a server", plan.cluster, staleness);
  plan.prediction.lower_bound_s = 0;  // of plans whose devices keep step, as other candidates are
  plan.prediction.bound_covers = "";
  predict(plan, graph, costs);
  predict_sureness(plan, graph, costs);
  std::erase_if(plan.prediction.candidates, [](const Candidate& other) { return !other.is_chosen(); });
  for (Candidate& chosen : plan.prediction.candidates) {
    const MeshPrediction& mesh = plan.prediction.meshes.front();
    chosen.step_s = plan.prediction.step_s;
    chosen.memory_bytes = mesh.memory.total;
    chosen.busiest = mesh;
  }
}

}  // namespace alpa
