#pragma once
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/runtime/executor.h"

namespace alpa {

/// The kept rows of all stages, each as the first rank of its mesh measured them, on rank 0; nothing on the
/// others. Collective over the ranks of the program, with buffers of the host.
std::vector<TimelineRow> gather_timeline(const Executor&, const Program&, Communicator&, Stream&);

}  // namespace alpa
