#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// Places every buffer of a stage in one arena: states, then what lasts a step, then the slots of what lasts
/// from forward to backward, then memory that all segments share, where buffers overlap when they are never
/// alive together. Expects `slots` to be set. The planner's memory and the trainer's allocation are both this
/// number.
void lay_out(StageProgram&, const Graph&);

/// First and last instruction of a segment that touches a buffer.
struct Lifetime {
  int first = -1, last = -1;
};
std::vector<Lifetime> lifetimes(const StageProgram&, SegmentKind);

}  // namespace alpa
