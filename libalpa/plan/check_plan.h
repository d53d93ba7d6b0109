#pragma once
#include "libalpa/plan/plan.h"

namespace alpa {

/// Checks a plan against its graph: sizes, meshes within the cluster and disjoint, stages covering all layers
/// in order, every strategy one that the operator's rule allows, every layout one that fits, no partial value
/// at rest in a state or across meshes, every transfer and input listed, every conversion possible. Throws
/// Error(input) with the first fault.
void check_plan(const Plan&, const Graph&);

}  // namespace alpa
