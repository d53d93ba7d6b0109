#include "libalpa/sharding/transfer.h"

#include <algorithm>
#include <map>

namespace alpa {
namespace {

struct Holder {
  Shape origin;
  std::vector<int> devices;
};

std::vector<Holder> holders(const Transfer& transfer) {
  std::map<Shape, std::vector<int>> by_origin;
  const int first = transfer.from_mesh.first_device;
  for (int device = first; device < first + device_count(transfer.from_mesh.shape); ++device)
    by_origin[tile_origin(transfer.whole.shape, transfer.from, transfer.from_mesh.shape,
                          coordinate_of(transfer.from_mesh, device))]
        .push_back(device);
  std::vector<Holder> list;
  for (auto& [origin, devices] : by_origin) list.push_back({origin, std::move(devices)});
  return list;
}

int chosen_sender(const std::vector<int>& copies, int receiver, int turn, int devices_per_node) {
  if (std::find(copies.begin(), copies.end(), receiver) != copies.end()) return receiver;
  std::vector<int> near;
  for (const int device : copies)
    if (device / devices_per_node == receiver / devices_per_node) near.push_back(device);
  const std::vector<int>& candidates = near.empty() ? copies : near;
  return candidates[static_cast<std::size_t>(turn) % candidates.size()];
}

}  // namespace

std::vector<TransferPiece> transfer_pieces(const Transfer& transfer, int devices_per_node) {
  const Shape& whole = transfer.whole.shape;
  const Shape from_tile = tile_shape(whole, transfer.from, transfer.from_mesh.shape);
  const Shape to_tile = tile_shape(whole, transfer.to, transfer.to_mesh.shape);
  const std::vector<Holder> sources = holders(transfer);
  std::vector<TransferPiece> pieces;
  const int first = transfer.to_mesh.first_device;
  for (int device = first; device < first + device_count(transfer.to_mesh.shape); ++device) {
    const Shape origin =
        tile_origin(whole, transfer.to, transfer.to_mesh.shape, coordinate_of(transfer.to_mesh, device));
    for (const Holder& source : sources) {
      TransferPiece piece{0, device, Shape(whole.size()), Shape(whole.size())};
      bool empty = false;
      for (std::size_t d = 0; d < whole.size(); ++d) {
        piece.origin[d] = std::max(origin[d], source.origin[d]);
        const std::int64_t end = std::min(origin[d] + to_tile[d], source.origin[d] + from_tile[d]);
        piece.extent[d] = end - piece.origin[d];
        empty = empty || piece.extent[d] <= 0;
      }
      if (empty) continue;
      piece.from_device = chosen_sender(source.devices, device, device - first, devices_per_node);
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

double transfer_seconds(const std::vector<TransferPiece>& pieces, DType type, const CostModel& costs) {
  std::map<int, double> sending, receiving;
  double busiest = 0;
  for (const TransferPiece& piece : pieces) {
    if (piece.from_device == piece.to_device) continue;
    const int per_node = costs.cluster().devices_per_node;
    const bool same_node = piece.from_device / per_node == piece.to_device / per_node;
    const double seconds =
        costs.send_seconds(same_node, static_cast<double>(element_count(piece.extent) * dtype_bytes(type)));
    busiest =
        std::max({busiest, sending[piece.from_device] += seconds, receiving[piece.to_device] += seconds});
  }
  return busiest;
}

}  // namespace alpa
