#pragma once
// Internal to this module.
#include "libalpa/graph/op.h"

namespace alpa::ops {

/// Of rotary and, with places as the second operand, of rotary_at.
ShardingRule rotary_rule(const OpCall&);

}  // namespace alpa::ops
