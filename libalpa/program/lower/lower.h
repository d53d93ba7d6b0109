#pragma once
#include <string>

#include "libalpa/program/program.h"
#include "libalpa/program/purpose.h"

namespace alpa {

/// The program of a plan: pure, and the same on every rank. Expects check_plan to have passed.
Program lower(const Graph&, const Plan&, Purpose = Purpose::train);

/// The program for other devices than the plan's cluster has, whose kernels want other memory.
Program lower(const Graph&, const Plan&, Purpose, DeviceKind);

/// Makes the training program of the plan one of another number of micro-batches, of which as many are in
/// flight at once: only what is run then differs.
void set_micro_batches(Program&, const Plan&, int micro_batches);

}  // namespace alpa
