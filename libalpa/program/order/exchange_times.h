#pragma once
#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/program.h"

namespace alpa {

/// What an exchange with servers that hold the states copies between tensors and messages. A server copies
/// what it collects once for each device.
double copied_seconds(const Program&, const MeshProgram&, const Exchange&, const CostModel&);

/// What all that is on its way in a step takes. Gradients of one device come while parameters go to another,
/// which is a message behind it, and interfaces send and receive at once: it is the longer of both ways.
double exchanged_seconds(const Program&, const CostModel&);

}  // namespace alpa
