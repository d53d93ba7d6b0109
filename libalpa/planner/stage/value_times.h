#pragma once
#include <utility>
#include <vector>

#include "libalpa/planner/stage/stage_clock.h"

namespace alpa {

using Ticks = std::vector<std::pair<int, int>>;  ///< half-open

/// Each tick once, in order.
Ticks united(Ticks);

struct Moment {
  int tick = 0, layer = 0;
};

/// When in a segment the values of a stage are used. Keeps references.
class ValueTimes {
 public:
  ValueTimes(const StageScope& scope, const StageClock& clock) : scope_(scope), clock_(clock) {}

  /// Of the uses in a segment, of which there is one, that which runs first, or last.
  StageScope::Use first_use(ValueIndex, Phase segment) const;
  StageScope::Use last_use(ValueIndex, Phase segment) const;

  /// When a value is brought into its segment's layout for the first of its users, or made into it where it
  /// has none itself (of equal layers only some hand on).
  Moment start_of_uses(ValueIndex, Phase segment) const;

  /// From a tick of one layer to a tick of the same or a later one; equal layers in between are there once.
  Ticks between(Moment begin, Moment end, Phase segment) const;

  /// Copies of the layer are there for the value's whole time then.
  bool used_by_equal_layers(ValueIndex, int layer, Phase segment) const;

 private:
  const StageScope& scope_;
  const StageClock& clock_;
};

}  // namespace alpa
