#include "libalpa/sharding/transfer/transfer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "libalpa/base/words.h"

namespace alpa {
namespace {

constexpr Word<TransferStrategy> kStrategyWords[] = {
    {"send-receive", TransferStrategy::send_receive, "to each device that needs it, one message"},
    {"local-all-gather", TransferStrategy::local_all_gather,
     "to each node once, in parts that its devices gather"},
    {"global-all-gather", TransferStrategy::global_all_gather, "once, in parts that all devices gather"},
    {"broadcast", TransferStrategy::broadcast, "once, in chunks that devices pass on along a chain"},
};

/// The devices that have each tile, by its origin and in ascending order.
using Tiles = std::map<Shape, std::vector<DeviceIndex>>;

Tiles tiles_of(const Shape& whole, const ShardingSpec& layout, const DeviceMesh& mesh) {
  Tiles tiles;
  const DeviceIndex first = mesh.first_device;
  for (DeviceIndex device = first; device < first + device_count(mesh.shape); ++device)
    tiles[tile_origin(whole, layout, mesh.shape, coordinate_of(mesh, device))].push_back(device);
  return tiles;
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

std::vector<TransferTask> transfer_tasks(const Transfer& transfer) {
  const Shape& whole = transfer.whole.shape;
  const Shape from_tile = tile_shape(whole, transfer.from, transfer.from_mesh.shape);
  const Shape to_tile = tile_shape(whole, transfer.to, transfer.to_mesh.shape);
  const Tiles held = tiles_of(whole, transfer.from, transfer.from_mesh);
  std::vector<TransferTask> tasks;
  for (const auto& [origin, receivers] : tiles_of(whole, transfer.to, transfer.to_mesh))
    for_tiles_in(origin, to_tile, from_tile, [&](const Shape& source) {
      TransferTask task{Shape(whole.size()), Shape(whole.size()), held.at(source), receivers};
      for (std::size_t d = 0; d < whole.size(); ++d) {
        task.origin[d] = std::max(origin[d], source[d]);
        task.extent[d] = std::min(origin[d] + to_tile[d], source[d] + from_tile[d]) - task.origin[d];
      }
      tasks.push_back(std::move(task));
    });
  std::ranges::stable_sort(tasks, {}, [](const TransferTask& task) { return task.receivers.front(); });
  return tasks;
}

std::span<const Word<TransferStrategy>> transfer_strategy_words() { return kStrategyWords; }

std::string transfer_strategy_name(TransferStrategy strategy) {
  return name_of(strategy, transfer_strategy_words());
}

TransferStrategy find_transfer_strategy(const std::string& name) {
  return value_named(name, transfer_strategy_words(), "transfer strategy");
}

std::string transfer_way_text(const TransferWay& way) {
  return transfer_strategy_name(way.strategy) +
         (way.chunks > 1 ? fmt::format(" in {} chunks", way.chunks) : "");
}

}  // namespace alpa
