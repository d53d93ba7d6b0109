#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// Places every buffer of a mesh in one arena: states (those that have owners last), then what lasts a step,
/// then the slots of what lasts from segment to segment, then memory that all segments share, where buffers
/// overlap when all that is done with one surely comes before all that is done with the other
/// (program/order/dependences). In a segment where the arena is then more than `limit` bytes, and would be
/// less if lanes did not run ahead of each other, instructions wait (Instruction::after) for those before
/// them whose memory they take over. So they do at once where what lasts leaves nothing of the limit, as with
/// one of 0. Where buffers of a segment leave gaps, other orders of placing them are tried within a budget
/// (Arena, in the tests, holds every model to 1.05 times the least). Expects the buffers' slots to be set.
/// The planner's memory and the trainer's allocation are both this number.
void lay_out(MeshProgram&, const Graph&, std::int64_t limit);

}  // namespace alpa
