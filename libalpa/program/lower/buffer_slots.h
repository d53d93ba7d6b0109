#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// Gives each buffer that passes from segment to segment a slot for every micro-batch between the begin of
/// its first use and the end of its last, by the mesh's schedule. Where stages share the mesh, buffers of as
/// many bytes have slots in common (Buffer::slots_in): as many as are in use at once, not the most of each,
/// which they hold at different times. Each micro-batch then has the lowest slot that is free (interval
/// colouring, which takes no more than there must be). What is sent, or loaded ahead, shares with
/// none: its next writer would wait for the latest message, or the load for the latest computation.
void set_slots(MeshProgram&, Overlap);

/// The same slots, to the micro-batches of another schedule, of as many or fewer of them.
void assign_slots(MeshProgram&);

}  // namespace alpa
