#include "libalpa/planner/stage_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

namespace alpa {
namespace {

using testing::ElementsAre;

Cluster nodes_of(int devices_per_node) {
  Cluster cluster;
  cluster.devices_per_node = devices_per_node;
  return cluster;
}

std::vector<StageRequest> placed(const std::vector<int>& sizes, int devices_per_node) {
  std::vector<StageRequest> stages;
  for (const int size : sizes) {
    stages.emplace_back();
    stages.back().mesh = size == 1 ? MeshShape{} : MeshShape{size};
  }
  place_stages(stages, nodes_of(devices_per_node));
  return stages;
}

std::vector<int> first_devices(const std::vector<int>& sizes, int devices_per_node) {
  std::vector<int> first;
  for (const StageRequest& stage : placed(sizes, devices_per_node)) first.push_back(stage.first_device);
  return first;
}

TEST(PlaceStages, FollowsThePipelineAndKeepsStagesWithinNodes) {
  EXPECT_THAT(first_devices({4, 4, 4, 4}, 8), ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(first_devices({8, 16, 8}, 8), ElementsAre(0, 8, 24));
  EXPECT_THAT(first_devices({4, 8, 4}, 8), ElementsAre(0, 8, 4));
  EXPECT_THAT(first_devices({1, 2, 1, 4}, 8), ElementsAre(0, 2, 1, 4));
  EXPECT_THAT(first_devices({1, 8, 4, 1, 2}, 8), ElementsAre(0, 8, 4, 1, 2));
  EXPECT_THAT(first_devices({2, 1, 3}, 6), ElementsAre(0, 2, 3));
}

TEST(PlaceStages, LaysStagesThatWouldStraddleNodesWhereFewNeighboursAreApart) {
  // In the order of the pipeline the middle one would have devices of both nodes. With its neighbours it
  // fills one node, and the first and the last the other.
  EXPECT_THAT(first_devices({4, 2, 4, 2, 4}, 8), ElementsAre(0, 12, 8, 14, 4));
  EXPECT_THAT(first_devices({8, 4, 2, 4, 2, 4}, 8), ElementsAre(0, 8, 20, 16, 22, 12));
}

/// Of all ways to put stages that are smaller than a node on nodes.
int fewest_apart(const std::vector<int>& sizes, int nodes, int devices_per_node) {
  std::vector<int> free(static_cast<std::size_t>(nodes), devices_per_node);
  int fewest = std::ssize(sizes);
  const std::function<void(std::size_t, std::size_t, int)> put = [&](std::size_t s, std::size_t before,
                                                                     int apart) {
    if (s == sizes.size()) fewest = std::min(fewest, apart);
    if (s == sizes.size()) return;
    for (std::size_t node = 0; node < free.size(); ++node) {
      if (free[node] < sizes[s]) continue;
      free[node] -= sizes[s];
      put(s + 1, node, apart + (s > 0 && node != before ? 1 : 0));
      free[node] += sizes[s];
    }
  };
  put(0, 0, 0);
  return fewest;
}

TEST(PlaceStages, LeavesTheFewestNeighboursApartWhereNoBorderOfStagesIsOneOfNodes) {
  std::mt19937 draw(3);
  int found = 0;
  while (found < 100) {
    std::vector<int> sizes;
    int left = draw() % 2 ? 24 : 16;
    const int nodes = left / 8;
    bool meets_border = false;
    while (left > 0) {
      int size = 1 << draw() % 3;
      while (size > left) size /= 2;
      sizes.push_back(size);
      left -= size;
      meets_border = meets_border || (left > 0 && left % 8 == 0);
    }
    if (meets_border) continue;
    ++found;
    const std::vector<StageRequest> stages = placed(sizes, 8);
    EXPECT_EQ(
        std::ranges::count_if(stages, [](const StageRequest& stage) { return stage.sides.after_is_apart; }),
        fewest_apart(sizes, nodes, 8))
        << testing::PrintToString(sizes);
  }
}

TEST(PlaceStages, LeavesTheRestOfTheLastNodeToSmallStages) {
  EXPECT_THAT(first_devices({4, 8}, 8), ElementsAre(8, 0));
  EXPECT_THAT(first_devices({2, 8, 2, 8}, 8), ElementsAre(16, 0, 18, 8));
}

TEST(PlaceStages, GivesStagesOfOneMeshTheSameDevices) {
  std::vector<StageRequest> stages(6);
  for (StageRequest& stage : stages) stage.mesh = {4};
  place_stages(stages, nodes_of(8), {0, 1, 2, 2, 1, 0});
  std::vector<int> first;
  for (const StageRequest& stage : stages) first.push_back(stage.first_device);
  EXPECT_THAT(first, ElementsAre(0, 4, 8, 8, 4, 0));
  EXPECT_EQ(stages[1].sides, (StageSides{false, true}));
  EXPECT_EQ(stages[2].sides, (StageSides{true, false}));  // the next is on the same devices
  EXPECT_EQ(stages[4].sides, (StageSides{true, false}));
}

TEST(PlaceStages, KeepsStagesWithinPartsWhereTheyFit) {
  const auto first_on = [](const std::vector<int>& nodes_of_parts, const std::vector<int>& sizes) {
    std::vector<Cluster> parts;
    for (const int nodes : nodes_of_parts) {
      parts.push_back(nodes_of(8));
      parts.back().nodes = nodes;
    }
    std::vector<StageRequest> stages;
    for (const int size : sizes) stages.push_back({.mesh = {size}});
    place_stages(stages, cluster_of_parts("c", parts));
    std::vector<int> first;
    for (const StageRequest& stage : stages) first.push_back(stage.first_device);
    return first;
  };
  EXPECT_THAT(first_on({4, 2}, {32, 16}), ElementsAre(0, 32));
  EXPECT_THAT(first_on({4, 2}, {16, 32}), ElementsAre(32, 0));
  EXPECT_THAT(first_on({4, 2}, {16, 16, 16}), ElementsAre(0, 16, 32));
  EXPECT_THAT(first_on({1, 2}, {4, 16, 4}), ElementsAre(0, 8, 4));
  EXPECT_THAT(first_on({2, 2}, {8, 16, 8}), ElementsAre(0, 16, 8));
  EXPECT_THAT(first_on({1, 2}, {24}), ElementsAre(0));        // across both
  EXPECT_THAT(first_on({2, 2}, {8, 24}), ElementsAre(0, 8));  // likewise
  EXPECT_THAT(first_on({2, 2}, {4, 4}), ElementsAre(0, 4));   // of fewer devices than there are
}

TEST(PlaceStages, SaysWhichNeighboursAreOnOtherNodes) {
  const std::vector<StageRequest> stages = placed({2, 2, 4, 8}, 4);
  EXPECT_EQ(stages[0].sides, (StageSides{false, false}));
  EXPECT_EQ(stages[1].sides, (StageSides{false, true}));
  EXPECT_EQ(stages[2].sides, (StageSides{true, true}));
  EXPECT_EQ(stages[3].sides, (StageSides{true, false}));
}

/// Random sizes of submesh_sizes that make up all devices.
std::vector<int> random_pipeline(std::mt19937& draw, int devices, int devices_per_node) {
  const std::vector<int> all = submesh_sizes(devices, devices_per_node);
  std::vector<int> sizes;
  for (int left = devices; left > 0; left -= sizes.back()) {
    int size = 0;
    do size = all[draw() % all.size()];
    while (size > left);
    sizes.push_back(size);
  }
  return sizes;
}

TEST(PlaceStages, GivesEachDeviceToOneStageAndNoStagePartsOfTwoNodes) {
  std::mt19937 draw(1);
  for (const auto& [devices, per_node] : {std::pair{16, 4}, {12, 8}, {28, 8}, {18, 6}, {6, 6}, {3, 4}})
    for (int round = 0; round < 200; ++round) {
      const std::vector<int> sizes = random_pipeline(draw, devices, per_node);
      std::vector<int> owners(static_cast<std::size_t>(devices), 0);
      for (const StageRequest& stage : placed(sizes, per_node)) {
        const int first = stage.first_device, size = device_count(stage.mesh);
        ASSERT_LE(first + size, devices);
        for (int device = first; device < first + size; ++device) ++owners[device];
        if (size < per_node) {
          EXPECT_EQ(first / per_node, (first + size - 1) / per_node);
        } else {
          EXPECT_EQ(first % per_node, 0);
        }
      }
      EXPECT_THAT(owners, testing::Each(1));
    }
}

TEST(StagePlaces, SayThatNeighboursAreApartOnlyWhereTheyAre) {
  std::mt19937 draw(2);
  int borders = 0, said = 0, apart = 0;
  for (const auto& [devices, per_node] : {std::pair{16, 4}, {12, 8}, {28, 8}, {18, 6}, {6, 6}, {32, 8}})
    for (int round = 0; round < 500; ++round) {
      const std::vector<StageRequest> stages = placed(random_pipeline(draw, devices, per_node), per_node);
      const StagePlaces places(devices, per_node);
      int left = devices;
      for (const StageRequest& stage : stages) {
        const int size = device_count(stage.mesh);
        const StageSides known = places.sides(size, left);
        const StageSides likely = places.likely().sides(size, left);
        EXPECT_TRUE(!known.before_is_apart || stage.sides.before_is_apart);
        EXPECT_TRUE(!known.before_is_apart || likely.before_is_apart);
        EXPECT_TRUE(!known.after_is_apart || likely.after_is_apart);
        EXPECT_TRUE(!known.after_is_apart || stage.sides.after_is_apart);
        const std::vector<StageSides> all = places.all_sides(size, left == devices, left == size);
        EXPECT_THAT(all, testing::AllOf(testing::Contains(known), testing::Contains(likely)));
        ++borders, said += known.before_is_apart, apart += stage.sides.before_is_apart;
        left -= size;
      }
      EXPECT_EQ(left, 0);
    }
  EXPECT_GT(said, apart / 2);  // all but those next to gaps that other stages fill
  EXPECT_LT(apart, borders);
}

TEST(StagePlaces, ExpectStagesThatWouldStraddleNodesToBeApart) {
  const StagePlaces known(16, 8), likely = known.likely();
  // Stages of 4, 2, 4, 2 and 4.
  EXPECT_EQ(known.sides(4, 10), (StageSides{false, false}));
  EXPECT_EQ(likely.sides(4, 10), (StageSides{true, true}));
  for (const auto& [size, left] : {std::pair{4, 16}, {2, 12}, {2, 6}, {4, 4}})
    EXPECT_EQ(likely.sides(size, left), known.sides(size, left));
}

TEST(StagePlaces, AreExactWhereStagesAreEqual) {
  for (const int size : {1, 2, 4, 8, 16}) {
    const std::vector<StageRequest> stages =
        placed(std::vector<int>(static_cast<std::size_t>(32 / size), size), 8);
    for (std::size_t s = 0; s < stages.size(); ++s)
      EXPECT_EQ(StagePlaces(32, 8).sides(size, 32 - static_cast<int>(s) * size), stages[s].sides);
  }
}

}  // namespace
}  // namespace alpa
