#pragma once
#include <memory>
#include <vector>

#include "apps/environment.h"
#include "libalpa/base/constraint.h"
#include "libalpa/comm/mpi_session.h"
#include "libalpa/device/device.h"

namespace alpa {

class OptionsVisitor;

/// Values of --device.
const std::vector<Word<DeviceKind>>& device_words();

/// What ranks compute on.
struct DeviceSettings {
  DeviceKind device = DeviceKind::cpu;
  int threads = 0;  ///< of each rank; 0: see threads_per_rank()
};

void describe(DeviceSettings&, OptionsVisitor&);

/// Where a rank computes, and how it reaches the others.
struct RankDevice {
  int threads = 1;
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> world;  ///< all ranks, for buffers of the device
};

/// The device of this rank: a CPU with that many threads, or the GPU among the visible ones
/// that is its turn on the node. Sets OpenMP's threads. Collective over all ranks. Throws Error(allocation)
/// where there is none.
RankDevice make_rank_device(const DeviceSettings&, const MpiSession&, const Environment&);

}  // namespace alpa
