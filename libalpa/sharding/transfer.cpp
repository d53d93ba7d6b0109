#include "libalpa/sharding/transfer.h"

#include <algorithm>
#include <map>

namespace alpa {
namespace {

/// The devices that hold each tile, by its origin and in ascending order.
using Holders = std::map<Shape, std::vector<DeviceIndex>>;

Holders holders_of(const Transfer& transfer) {
  Holders holders;
  const DeviceIndex first = transfer.from_mesh.first_device;
  for (DeviceIndex device = first; device < first + device_count(transfer.from_mesh.shape); ++device)
    holders[tile_origin(transfer.whole.shape, transfer.from, transfer.from_mesh.shape,
                        coordinate_of(transfer.from_mesh, device))]
        .push_back(device);
  return holders;
}

DeviceIndex chosen_sender(const std::vector<DeviceIndex>& copies, DeviceIndex receiver, int turn,
                          int devices_per_node) {
  if (std::binary_search(copies.begin(), copies.end(), receiver)) return receiver;
  const int node = receiver / devices_per_node;
  const auto near = std::lower_bound(copies.begin(), copies.end(), node * devices_per_node),
             far = std::lower_bound(near, copies.end(), (node + 1) * devices_per_node);
  const auto [begin, end] = near == far ? std::pair(copies.begin(), copies.end()) : std::pair(near, far);
  return begin[turn % (end - begin)];
}

/// Calls `visit` with the origin of each tile of a grid that meets a box, in ascending order.
template <class Visit>
void for_tiles_in(const Shape& origin, const Shape& extent, const Shape& tile, const Visit& visit) {
  const std::size_t rank = origin.size();
  Shape at(rank);
  for (std::size_t d = 0; d < rank; ++d) at[d] = origin[d] / tile[d] * tile[d];
  const Shape first = at;
  for (;;) {
    visit(at);
    std::size_t d = rank;
    while (d > 0 && (at[d - 1] += tile[d - 1]) >= origin[d - 1] + extent[d - 1]) {
      --d;
      at[d] = first[d];
    }
    if (d == 0) return;
  }
}

}  // namespace

std::vector<TransferPiece> transfer_pieces(const Transfer& transfer, int devices_per_node) {
  const Shape& whole = transfer.whole.shape;
  const Shape from_tile = tile_shape(whole, transfer.from, transfer.from_mesh.shape);
  const Shape to_tile = tile_shape(whole, transfer.to, transfer.to_mesh.shape);
  const Holders holders = holders_of(transfer);
  std::vector<TransferPiece> pieces;
  const DeviceIndex first = transfer.to_mesh.first_device;
  for (DeviceIndex device = first; device < first + device_count(transfer.to_mesh.shape); ++device) {
    const Shape origin =
        tile_origin(whole, transfer.to, transfer.to_mesh.shape, coordinate_of(transfer.to_mesh, device));
    for_tiles_in(origin, to_tile, from_tile, [&](const Shape& source) {
      TransferPiece piece{DeviceIndex(0), device, Shape(whole.size()), Shape(whole.size())};
      for (std::size_t d = 0; d < whole.size(); ++d) {
        piece.origin[d] = std::max(origin[d], source[d]);
        piece.extent[d] = std::min(origin[d] + to_tile[d], source[d] + from_tile[d]) - piece.origin[d];
      }
      piece.from_device = chosen_sender(holders.at(source), device, device - first, devices_per_node);
      pieces.push_back(std::move(piece));
    });
  }
  return pieces;
}

ShardingSpec arriving_layout(const Shape& whole, const ShardingSpec& to, const MeshShape& mesh,
                             int devices_per_node) {
  ShardingSpec arrives = to;
  if (whole.empty()) return arrives;
  std::size_t axis = mesh.size();  // the first of those along which devices share a node
  for (int together = 1; axis > 0 && (together *= mesh[axis - 1]) <= devices_per_node;) --axis;
  for (; axis < mesh.size(); ++axis) {
    std::vector<int>& outermost = arrives.axes[0];
    const auto next = static_cast<int>(axis);
    // Parts within parts: the last axis is gathered first.
    if (mesh[axis] == 1 || splits_along(to, next) || (!outermost.empty() && outermost.back() > next))
      continue;
    outermost.push_back(next);
    if (!fits(whole, arrives, mesh)) outermost.pop_back();
  }
  return arrives;
}

bool on_one_node(const TransferPiece& piece, const Cluster& cluster) {
  return piece.from_device / cluster.devices_per_node == piece.to_device / cluster.devices_per_node;
}

DeviceIndex first_on_nic(DeviceIndex device, const CostModel& costs) {
  const Cluster& cluster = costs.on(device).cluster();
  return DeviceIndex(device - device % cluster.devices_per_node % cluster.devices_per_nic());
}

double transfer_seconds(const std::vector<TransferPiece>& pieces, DType type, const CostModel& costs) {
  const Cluster& cluster = costs.cluster();
  std::map<DeviceIndex, double> sending, receiving;
  std::map<std::pair<DeviceIndex, bool>, double> through_nic;
  double busiest = 0;
  for (const TransferPiece& piece : pieces) {
    if (piece.from_device == piece.to_device) continue;
    const double bytes = static_cast<double>(element_count(piece.extent) * dtype_bytes(type));
    const bool one_node = on_one_node(piece, cluster);
    const CostModel &from = costs.on(piece.from_device), &to = costs.on(piece.to_device);
    const double seconds = std::max(from.send_seconds(one_node, bytes), to.send_seconds(one_node, bytes));
    busiest =
        std::max({busiest, sending[piece.from_device] += seconds, receiving[piece.to_device] += seconds});
    if (one_node) continue;
    busiest = std::max(
        {busiest, through_nic[{first_on_nic(piece.from_device, costs), true}] += from.nic_seconds(bytes),
         through_nic[{first_on_nic(piece.to_device, costs), false}] += to.nic_seconds(bytes)});
  }
  return busiest;
}

}  // namespace alpa
