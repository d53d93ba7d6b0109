#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/cluster/cluster.h"
#include "libalpa/sharding/transfer/multicast_order.h"
#include "libalpa/sharding/transfer/transfer.h"

namespace alpa {

/// A part of a task's box, from one device to another: those elements of the box, in its own row-major order.
struct TransferMessage {
  int task = 0;
  DeviceIndex from{0}, to{0};
  std::int64_t begin = 0, end = 0;
  int after = -1;  ///< the message that brings `from` what it passes on; -1: `from` holds the box
  bool operator==(const TransferMessage&) const = default;

  std::int64_t elements() const { return end - begin; }
  bool is_passed_on() const { return after >= 0; }
};

/// All that a transfer sends. Every device sends and receives in the order of the messages; what is passed on
/// has arrived by an earlier one.
struct TransferRoute {
  std::vector<TransferTask> tasks;
  std::vector<TransferMessage> messages;
  bool operator==(const TransferRoute&) const = default;
};

/// Boxes of which a node has copies go to its other devices from there. Which holder sends a box, and which
/// boxes go first, is chosen for network interfaces to be busy at once and for short (multicast_order.h); a
/// chain goes through each node once, the slowest last, and a box that is held behind several interfaces and
/// needed behind several goes in as many parts.
TransferRoute transfer_route(const Transfer&, const TransferWay&, const Cluster&,
                             MulticastSearch = MulticastSearch::order);

/// The same between devices so many places on.
Transfer moved(Transfer, int devices);
TransferRoute moved(TransferRoute, int devices);

/// By how many places it can be moved towards the first device for the route to stay as it is: whole nodes,
/// where all are alike.
int places_on(const Transfer&, const Cluster&);

bool is_on_one_node(const TransferMessage&, int devices_per_node);
bool leaves_node(const TransferRoute&, int devices_per_node);
bool passes_on(const TransferRoute&);

/// The first of the devices that send and receive over the same interface as this one.
DeviceIndex first_on_nic(DeviceIndex, const Cluster&);

/// A device packs each box once that it holds and sends, or sends parts of. Elements of all of them, on the
/// device that has most.
std::int64_t most_packed_elements(const TransferRoute&);

}  // namespace alpa
