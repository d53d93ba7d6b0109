#pragma once
#include <vector>

#include "libalpa/cluster/cost_model.h"
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

/// One message: a box of the tensor, from a device that holds it to one that needs it. Devices are cluster
/// indices; a device that is in both meshes copies from itself.
struct TransferPiece {
  DeviceIndex from_device{0}, to_device{0};
  Shape origin, extent;  ///< global
};

/// Every destination tile cut along the source tiles; among the copies of a source tile the receiver takes
/// the one on its own device, else one on its own node, else they take turns. Ordered by receiver, then by
/// origin: both ends walk their own messages in this order.
std::vector<TransferPiece> transfer_pieces(const Transfer&, int devices_per_node);

/// Busy time of the busiest device, or network interface. A message takes as long as at the slower of its
/// ends.
double transfer_seconds(const std::vector<TransferPiece>&, DType, const CostModel&);

/// In which layout a tensor had better arrive from other nodes where devices of a node are to hold the same
/// of it: each gets a part of the outermost dimension, which they all-gather (the local all-gather of Alpa,
/// to which MLSys'23 compares its broadcasts). `to` itself where that cannot be.
ShardingSpec arriving_layout(const Shape& whole, const ShardingSpec& to, const MeshShape&,
                             int devices_per_node);

bool on_one_node(const TransferPiece&, const Cluster&);
/// The first of the devices that send and receive over the same interface as this one.
DeviceIndex first_on_nic(DeviceIndex, const CostModel&);

}  // namespace alpa
