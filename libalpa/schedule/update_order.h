#pragma once
#include <span>
#include <string>

#include "libalpa/base/constraint.h"

namespace alpa {

/// Whether updates wait for the norm of all gradients where they have a use for it (GraphUses::updates_wait),
/// and whether the next step waits for them.
enum class UpdateOrder {
  after_norm,
  /// They are made as if the norm did not bind, from states that are copied first; where it turns out to,
  /// they are taken back and made again ("post-validation": Qi et al., Zero Bubble Pipeline Parallelism,
  /// ICLR'24, section 4; with copies in place of arithmetic that nearly undoes an update).
  before_norm,
  /// Each comes in the forward of the next step, before its states are used, so that there is no barrier
  /// between steps: while gradients are still added up the next forward goes on (Peng et al., ByteScheduler,
  /// SOSP'19). Those that wait for the norm come first in it; what is gathered of them goes on beside it. As
  /// after_norm in plans for which defers_updates says no.
  next_forward,
};

/// As options, pins and plans call them.
std::span<const Word<UpdateOrder>> update_order_words();
std::string update_order_name(UpdateOrder);
UpdateOrder find_update_order(const std::string& name);  ///< Throws Error(input) that lists them.

}  // namespace alpa
