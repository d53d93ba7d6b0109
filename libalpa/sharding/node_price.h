#pragma once
#include <cstdint>
#include <span>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/graph/op.h"

namespace alpa {

/// One call of a kernel on local tiles.
double kernel_seconds(const OpDef&, const OpCall&, const CostModel&);

/// Every device along a mesh axis passes so many bytes on to the next one.
double shift_seconds(std::int64_t bytes, const DeviceMesh&, int axis, const CostModel&);

/// Each device along a mesh axis has the sum of all over bytes of its own (`reduces`), or hands them to all:
/// [place] how many. Whoever has the most takes as long as where all have so many, since its network
/// interface then has the same to do. (That each piece may be a message of its own is not in it.)
double owners_seconds(bool reduces, std::span<const std::int64_t> bytes, const DeviceMesh&, int axis,
                      const CostModel&);

}  // namespace alpa
