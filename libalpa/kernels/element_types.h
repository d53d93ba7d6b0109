#pragma once
#include "libalpa/device/device.h"
#include "libalpa/graph/graph.h"

namespace alpa {

/// Throws Error(allocation) where the graph has values in a type that such devices do not compute in: f16 on
/// CPUs.
void check_element_types(const Device&, const Graph&);

}  // namespace alpa
