#pragma once
#include <vector>

#include "libalpa/program/program.h"

namespace alpa {

/// What an instruction queues in.
Lane lane_for(const InstructionBody&, const std::vector<StageTransfer>&);

}  // namespace alpa
