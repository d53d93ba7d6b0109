#pragma once
#include "libalpa/program/order/dependences.h"
#include "libalpa/program/program.h"

namespace alpa {

/// Looks at the step of one mesh for two instructions of which nothing says which is done first although one
/// of them writes what the other touches, and for what is read before it is written, or from a slot that
/// another micro-batch has taken. Throws Error(run_time) as verify() does.
void check_races(const Program&, MeshIndex, const Dependences&);

}  // namespace alpa
