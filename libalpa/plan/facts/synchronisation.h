#pragma once
#include <string>

#include "libalpa/plan/placement.h"
#include "libalpa/sharding/conversion.h"

namespace alpa {

/// How a sum of gradients gets to the update of its parameter, in words: "all-reduce over 4 devices (axis 0),
/// in a bucket", "summed up at 2 owners of 4 devices (axis 0), which update it for all", "made by all 4
/// devices of gathered factors (axis 0)", "no communication". `mesh`: that of the sum, whose conversions
/// these are.
std::string synchronisation_text(const Placement&, MeshIndex mesh, const Conversions&, ValueIndex sum);

}  // namespace alpa
