#pragma once
#include "libalpa/plan/plan.h"
#include "libalpa/schedule/update_order.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {

/// Updates have a use for the norm of all gradients, and wait for it.
inline bool updates_wait(const GraphUses& uses, UpdateOrder order) {
  return uses.updates_wait && order != UpdateOrder::before_norm;
}

/// They have, and are made before it, and once more where it binds.
inline bool corrects_updates(const GraphUses& uses, UpdateOrder order) {
  return uses.updates_wait && order == UpdateOrder::before_norm;
}

/// They come in the forward of the next step. Not in plans whose meshes have several stages each, or send
/// each other something in the update (tied weights); nor in f16, where the next step's loss scale depends on
/// what came out of the last.
bool defers_updates(const GraphUses& uses, const Plan&);

/// What that order comes to in a plan: after_norm where it makes no difference, or where updates that may
/// have to be made again would be of states that rest on the host.
UpdateOrder order_in_effect(const GraphUses& uses, Plan, UpdateOrder);

}  // namespace alpa
