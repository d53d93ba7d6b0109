#pragma once

namespace alpa::emulation {

/// NCCL between threads of one process, each a rank, on streams of emulated_stream.h. What all ranks of a
/// communicator have come to on their streams is done; as messages of NCCL may, sends wait there for their
/// receivers, and as in releases after 2.30.7, ncclCommDestroy returns when all ranks of the communicator
/// have called it.

/// Before each use of NCCL by a group of ranks.
void reset_nccl();

/// How many communicators ranks have, each rank's of a communicator counted.
int communicators();

/// Whether all ranks were found to wait in ncclCommDestroy, each for another communicator; the calls then
/// return.
bool ends_waited_in_a_circle();

/// Has all calls that wait return ncclRemoteError.
void release_nccl();

}  // namespace alpa::emulation
