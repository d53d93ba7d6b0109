#include "libalpa/plan/update_timing.h"

#include <algorithm>

namespace alpa {

bool defers_updates(const GraphUses& uses, const Plan& plan) {
  const auto is_f16 = [](const Value& value) { return value.type.dtype == DType::f16; };
  return plan.updates == UpdateOrder::next_forward && std::ranges::none_of(uses.graph.values, is_f16) &&
         plan.meshes.size() == plan.stages.size() &&
         std::ranges::all_of(
             plan.on_host,
             [&](ValueIndex v) { return is_of_update_alone(uses, uses.graph.states[uses.state_at[v]]); }) &&
         std::ranges::none_of(plan.transfers, [&](const PlannedTransfer& transfer) {
           return phase_of_transfer(uses.graph, transfer.value) == Phase::update;
         });
}

UpdateOrder order_in_effect(const GraphUses& uses, Plan plan, UpdateOrder order) {
  plan.updates = order;
  if (corrects_updates(uses, order) && !plan.on_host.empty()) return UpdateOrder::after_norm;
  return corrects_updates(uses, order) || defers_updates(uses, plan) ? order : UpdateOrder::after_norm;
}

}  // namespace alpa
