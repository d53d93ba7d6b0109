#pragma once
#include <string>
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/program/order/rank_rows.h"
#include "libalpa/runtime/executor.h"

namespace alpa {

/// The kept rows of these ranks, on rank 0 with the hosts that they are on; nothing on the others. `host` is
/// this rank's. Collective over the ranks of the program, with buffers of the host.
std::vector<RankRows> gather_timeline(const Executor&, const std::vector<DeviceIndex>& ranks,
                                      const std::string& host, Communicator&, Stream&);

}  // namespace alpa
