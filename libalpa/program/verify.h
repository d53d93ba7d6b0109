#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// Proves of a program, without running it: every micro-batch goes forward and backward once, those in flight
/// in slots of their own; nothing is read before it is written; no two buffers that are alive together share
/// memory; every send has its receive, in the same order between each pair of stages; the stages do not wait
/// for each other in a circle. Throws Error(run_time) naming stage, segment and instruction; such a program
/// is our own bug or an altered plan.
void verify(const Program&, const Graph&);

}  // namespace alpa
