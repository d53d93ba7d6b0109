#pragma once
#include <memory>
#include <string>
#include <vector>

#include "libalpa/program/order/dependences.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/runtime/steps.h"

namespace alpa {

/// An instruction of a mesh made ready for one rank, and what it waits for.
struct PreparedStep {
  std::unique_ptr<PreparedInstruction> instruction;
  When when = When::every_micro_batch;
  bool is_here = true;  ///< this rank's, as it has what the instruction touches
  bool takes = false;   ///< Exchange::Kind::take
  std::vector<Dependence> waits;
  std::string name;  ///< "receive 3 of the forward of stage 1"
  TimelineRow row;   ///< all of it but the time and the micro-batch
};

/// Whether the instruction does something there.
bool acts(const PreparedStep&, const Program&, const StepContext&);

/// The context of what follows is that run.
void enter_run(StepContext&, const Program&, const MeshProgram&, const SegmentRun&);

using PreparedSteps = std::vector<std::vector<PreparedStep>>;  ///< [segment][instruction]

}  // namespace alpa
