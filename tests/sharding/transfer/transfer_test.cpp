#include "libalpa/sharding/transfer/transfer.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/index_literals.h"

namespace alpa {
namespace {

/// [device] The elements of a box that it holds, by a walk over all coordinates.
bool holds(const Shape& whole, const ShardingSpec& layout, const DeviceMesh& mesh, DeviceIndex device,
           const Shape& element) {
  const Shape tile = tile_shape(whole, layout, mesh.shape),
              at = tile_origin(whole, layout, mesh.shape, coordinate_of(mesh, device));
  for (std::size_t d = 0; d < whole.size(); ++d)
    if (element[d] < at[d] || element[d] >= at[d] + tile[d]) return false;
  return true;
}

/// Each element that a device needs is in exactly one task that serves it, and all of its holders hold it.
void expect_complete(const Transfer& transfer) {
  const Shape& whole = transfer.whole.shape;
  const std::vector<TransferTask> tasks = transfer_tasks(transfer);
  for (std::int64_t row = 0; row < whole[0]; ++row)
    for (std::int64_t column = 0; column < whole[1]; ++column) {
      std::map<DeviceIndex, int> served;
      for (const TransferTask& task : tasks) {
        const Shape element{row, column};
        bool is_in = true;
        for (std::size_t d = 0; d < 2; ++d)
          is_in = is_in && element[d] >= task.origin[d] && element[d] < task.origin[d] + task.extent[d];
        if (!is_in) continue;
        for (const DeviceIndex device : task.receivers) ++served[device];
        for (DeviceIndex device = transfer.from_mesh.first_device;
             device < transfer.from_mesh.first_device + device_count(transfer.from_mesh.shape); ++device)
          EXPECT_EQ(std::ranges::count(task.holders, device),
                    holds(whole, transfer.from, transfer.from_mesh, device, element));
      }
      for (DeviceIndex device = transfer.to_mesh.first_device;
           device < transfer.to_mesh.first_device + device_count(transfer.to_mesh.shape); ++device)
        EXPECT_EQ(served[device], holds(whole, transfer.to, transfer.to_mesh, device, {row, column}))
            << "device " << device << ", element " << row << ", " << column;
    }
}

TEST(TransferTasks, ServeEachDeviceWithEachElementOfItsTileOnce) {
  for (const char* from : {"RR", "S0R", "RS1", "S0S1", "S01R"})
    for (const char* to : {"RR", "S0R", "RS0", "S1S0", "RS01"})
      expect_complete({{DType::f32, {8, 8}}, {0_d, {2, 2}}, {4_d, {2, 2}}, parse_spec(from), parse_spec(to)});
}

TEST(TransferTasks, MayBeRagged) {
  for (const char* from : {"S0R", "RS0"})
    for (const char* to : {"S0R", "RS0", "S01R"})
      expect_complete({{DType::f32, {12, 6}}, {0_d, {2}}, {2_d, {3, 2}}, parse_spec(from), parse_spec(to)});
  const std::vector<TransferTask> tasks =
      transfer_tasks({{DType::f32, {12}}, {0_d, {2}}, {2_d, {3}}, parse_spec("S0"), parse_spec("S0")});
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tasks[1], (TransferTask{{4}, {2}, {0_d}, {3_d}}));
  EXPECT_EQ(tasks[2], (TransferTask{{6}, {2}, {1_d}, {3_d}}));
}

TEST(TransferTasks, OfEqualTilesAreOne) {
  const std::vector<TransferTask> tasks =
      transfer_tasks({{DType::f32, {8}}, {0_d, {2}}, {2_d, {2, 2}}, parse_spec("R"), parse_spec("S0")});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0], (TransferTask{{0}, {4}, {0_d, 1_d}, {2_d, 3_d}}));
  EXPECT_EQ(tasks[1], (TransferTask{{4}, {4}, {0_d, 1_d}, {4_d, 5_d}}));
}

}  // namespace
}  // namespace alpa
