#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// Gives each buffer that passes from segment to segment a slot for every micro-batch between the begin of
/// its first use and the end of its last, by the mesh's schedule. Where stages share the mesh, buffers of as
/// many bytes have slots in common (Buffer::shares): as many as are in use at once, and not the most of each,
/// which stages hold at different times. Then a table says who has which (interval colouring: the lowest one
/// that is free). What messages are sent from shares with none, as its next writer would wait for a message
/// that left long after.
void set_slots(MeshProgram&);

/// The same slots, to the micro-batches of another schedule, of as many or fewer of them.
void assign_slots(MeshProgram&);

}  // namespace alpa
