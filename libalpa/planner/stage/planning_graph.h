#pragma once
#include <algorithm>
#include <vector>

#include "libalpa/graph/dimension_roles.h"
#include "libalpa/plan/update_timing.h"
#include "libalpa/planner/stage/layer_classes.h"
#include "libalpa/planner/stage/stage_limits.h"
#include "libalpa/schedule/overlap.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {

/// What all stage problems of one graph share.
struct PlanningGraph {
  GraphUses uses;
  LayerClasses classes;
  std::vector<ShardingRule> rules;             ///< [node]
  std::vector<std::vector<FactorRole>> roles;  ///< of factors
  StageLimits limits;
  Overlap overlap = Overlap::none;                ///< of the plan
  UpdateOrder updates = UpdateOrder::after_norm;  ///< likewise
  bool has_buckets = false;                       ///< it may add up several sums of gradients together
  std::vector<ValueIndex> on_host = {};           ///< as of Plan

  const Graph& graph() const { return uses.graph; }
  bool rests_on_host(ValueIndex state) const { return std::ranges::binary_search(on_host, state); }
  /// What else than updates takes on the host.
  bool is_parameter_on_host(ValueIndex state) const {
    return rests_on_host(state) && graph().states[uses.state_at[state]].is_parameter;
  }
  /// On the device, in the layout that its update makes. (Parameters have one of their own.)
  bool rests_as_updated(StateIndex state) const {
    const State& of = graph().states[state];
    return !of.is_parameter && !rests_on_host(of.value);
  }
  bool updates_wait() const { return alpa::updates_wait(uses, updates); }
  bool corrects_updates() const { return alpa::corrects_updates(uses, updates); }
};

PlanningGraph prepare(const Graph&, StageLimits = {});
PlanningGraph prepare(const Graph&, LayerClasses);

}  // namespace alpa
