#pragma once
#include "libalpa/program/order/dependences.h"
#include "libalpa/program/program.h"

namespace alpa {

/// Proves of a program, without running it: every micro-batch passes the segments of its stages once, in
/// their order; nothing is read before it is written, nor after another micro-batch has taken its slot;
/// whatever two instructions do to the same bytes, one is surely done before the other starts; every send has
/// its receive, in the same order between each pair of meshes; the meshes do not wait for each other in a
/// circle. The order is that of `dependences`; what conflicts is read from where the buffers lie. Throws
/// Error(run_time) naming mesh, segment, instruction and micro-batch; such a program is our own bug or an
/// altered plan.
void verify(const Program&);

/// The same with another order (one per mesh).
void verify(const Program&, const std::vector<Dependences>&);

}  // namespace alpa
