#pragma once
#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/program.h"

namespace alpa {

/// What an exchange with servers that hold the states takes its rank: all of it where devices keep step; else
/// what it copies, as the rest is on its way beside later steps. The last of a device has what servers do
/// meanwhile. A server copies what it collects once for each device.
double exchange_seconds(const Program&, const MeshProgram&, const Exchange&, const CostModel&);

/// The least that a step takes for what is on its way beside its computation, and for what servers do: each
/// interface sends and receives at once, and gradients go and parameters come back in as many steps as these
/// may be old. 0 where devices keep step.
double least_seconds_of_exchanges(const Program&, const CostModel&);

}  // namespace alpa
