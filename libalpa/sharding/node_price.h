#pragma once
#include <cstdint>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/graph/op.h"

namespace alpa {

/// One call of a kernel on local tiles.
double kernel_seconds(const OpDef&, const OpCall&, const CostModel&);

/// Every device along a mesh axis passes so many bytes on to the next one.
double shift_seconds(std::int64_t bytes, const DeviceMesh&, int axis, const CostModel&);

}  // namespace alpa
