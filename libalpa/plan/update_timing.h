#pragma once
#include "libalpa/schedule/update_order.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {

/// Updates have a use for the norm of all gradients, and wait for it.
inline bool updates_wait(const GraphUses& uses, UpdateOrder order) {
  return uses.updates_wait && order == UpdateOrder::after_norm;
}

/// They have, and are made before it, and once more where it binds.
inline bool corrects_updates(const GraphUses& uses, UpdateOrder order) {
  return uses.updates_wait && order == UpdateOrder::before_norm;
}

}  // namespace alpa
