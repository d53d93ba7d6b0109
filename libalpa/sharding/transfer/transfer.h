#pragma once
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/cluster/mesh.h"
#include "libalpa/sharding/sharding_spec.h"

namespace alpa {

/// A tensor that goes from one mesh, under one layout, to another mesh under another: cross-mesh resharding
/// ("On optimizing the communication of model parallelism", MLSys'23). Layouts are not partial.
struct Transfer {
  TensorType whole;
  DeviceMesh from_mesh, to_mesh;
  ShardingSpec from, to;
  bool operator==(const Transfer&) const = default;
};

/// A box of the tensor, the devices that hold it and those that need it, both ascending: a unit task of
/// MLSys'23, section 3. Any device that holds it may send it.
struct TransferTask {
  Shape origin, extent;  ///< global
  std::vector<DeviceIndex> holders, receivers;
  bool operator==(const TransferTask&) const = default;
};

/// Every destination tile cut along the source tiles, ordered by the first receiver, then by origin. Tiles of
/// any size: what is ragged is cut where it has to be.
std::vector<TransferTask> transfer_tasks(const Transfer&);

/// How a box gets from a device that holds it to all that need it (MLSys'23, section 3.1); T is the time that
/// it takes over a network interface.
enum class TransferStrategy {
  send_receive,       ///< to each of them: T for each
  local_all_gather,   ///< a part to each device of a node, which gather it among them: T for each node
  global_all_gather,  ///< a part to each, which gather it among all: 2 T
  broadcast,          ///< in chunks along a chain of all: T, and a chunk's time for each link of the chain
};

/// As options, pins and plans call them.
std::span<const Word<TransferStrategy>> transfer_strategy_words();
std::string transfer_strategy_name(TransferStrategy);
TransferStrategy find_transfer_strategy(const std::string& name);  ///< Throws Error(input) that lists them.

/// The way that a transfer takes.
struct TransferWay {
  TransferStrategy strategy = TransferStrategy::send_receive;
  int chunks = 1;  ///< of a broadcast
  bool operator==(const TransferWay&) const = default;
};
std::string transfer_way_text(const TransferWay&);  ///< "broadcast in 16 chunks"

inline constexpr int kMostTransferChunks = 1024;

}  // namespace alpa
