#pragma once

namespace alpa::emulation {

/// NCCL between threads of one process, each a rank. Calls are done when they return, but for sends, whose
/// bytes wait for their receiver. As in releases after 2.30.7, ncclCommDestroy returns when all ranks of the
/// communicator have called it.

/// Before each use of NCCL by a group of ranks.
void reset_nccl();

/// Whether all ranks were found to wait in ncclCommDestroy, each for another communicator; the calls then
/// return.
bool ends_waited_in_a_circle();

/// Has all calls that wait return ncclRemoteError.
void release_nccl();

}  // namespace alpa::emulation
