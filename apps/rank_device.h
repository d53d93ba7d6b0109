#pragma once
#include <memory>
#include <vector>

#include "apps/environment.h"
#include "libalpa/base/constraint.h"
#include "libalpa/comm/mpi_session.h"
#include "libalpa/device/device.h"

namespace alpa {

struct Cluster;
class OptionsVisitor;

/// Where the threads of a rank run.
enum class ThreadPlacement {
  own_cores,  ///< on those of core_share(), where each thread of every rank has one
  anywhere,
};

/// What ranks compute on.
struct DeviceSettings {
  DeviceKind device = DeviceKind::cpu;
  int threads = 0;  ///< of each rank; 0: see threads_per_rank()
  ThreadPlacement placement = ThreadPlacement::own_cores;
  bool may_emulate = false;  ///< --device emulated is among the values
};

void describe(DeviceSettings&, OptionsVisitor&);

/// Where a rank computes, and how it reaches the others.
struct RankDevice {
  int threads = 1;
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> world;  ///< all ranks, for buffers of the device
};

/// The device of this rank: a CPU with that many threads, or the GPU among the visible ones
/// that is its turn on the node, or one that stands for a device of the cluster that is emulated. Sets
/// OpenMP's threads, and where this thread and those that it starts run. Collective over all ranks. Throws
/// Error(allocation) where there is none.
RankDevice make_rank_device(const DeviceSettings&, const MpiSession&, const Environment&,
                            const Cluster* emulated = nullptr);

}  // namespace alpa
