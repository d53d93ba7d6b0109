#pragma once
#include <string>
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Where the ranks of a job are, and what they compute on.
struct JobMachines {
  std::vector<int> node_of_rank;
  std::string device;  ///< Device::description() of this rank's
  DeviceKind kind = DeviceKind::cpu;
  int rank = 0;  ///< this one
};

/// `node` is this rank's. Collective over `control`, which works on the host.
JobMachines gather_machines(int node, const Device& device, Device& host, Communicator& control);

/// Throws Error(allocation) where a job has another number of ranks than planned, so many servers' among
/// them.
void check_rank_count(int planned, int ranks, int servers = 0);

/// Holds a plan against the machines of the job. Throws Error(allocation) where their numbers of devices
/// differ, where the plan has other devices on one node than the job has ranks, or where it was priced by
/// measurements on another kind of device. Emulated devices may be on any nodes. Returns what to warn of: why
/// the plan's predictions are not for these machines, "" where they are.
std::string check_machines(const Plan&, const JobMachines&);

}  // namespace alpa
