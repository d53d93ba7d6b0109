#pragma once
#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/program.h"

namespace alpa {

/// What an exchange with servers that hold the states takes its rank: what it copies, as the rest is on its
/// way beside later steps. Where devices keep step, the take has the rest. A server copies what it collects
/// once for each device.
double exchange_seconds(const Program&, const MeshProgram&, const Exchange&, const CostModel&);

/// The least that a step takes for what is on its way, and for what servers do. Gradients of one device come
/// while parameters go to another, which is a message behind it, and interfaces send and receive at once: it
/// is the longer of both ways.
double least_seconds_of_exchanges(const Program&, const CostModel&);

}  // namespace alpa
