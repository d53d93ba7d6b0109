#pragma once
#include "libalpa/cluster/cost_model.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"

namespace alpa {

/// The ranks of a job. `data_plane` moves tensors of the device, `control` small host values (its stream is a
/// CPU's), `files` likewise while ranks wait for one another at files. Rank r is device r of the plan.
struct TrainRanks {
  Device& device;
  Communicator& data_plane;
  Device& host;
  Communicator& control;
  Communicator& files;
  const CostModel* costs = nullptr;  ///< of an emulated device: how long its computations take
  int ranks_on_node = 1;             ///< on this rank's node
};

}  // namespace alpa
