#include "libalpa/profiler/machines.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<RankFacts> two_nodes_of_two() {
  std::vector<RankFacts> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.push_back(
        {r / 2, 2, r < 2 ? "left" : "right", "NVIDIA H200 (GPU-" + std::to_string(r) + ")", true, 100 + r});
  return ranks;
}

void expect_refusal(const std::vector<RankFacts>& ranks, const char* happened, const char* hint) {
  EXPECT_THAT([&] { machines_of("m", ranks); },
              ThrowsMessage<Error>(AllOf(HasSubstr(happened), HasSubstr(hint))));
}

TEST(Machines, AreNodesOfEqualDevicesWithTheLeastMemory) {
  const Machines machines = machines_of("m", two_nodes_of_two());
  EXPECT_EQ(machines.name, "m");
  EXPECT_EQ(machines.device, "NVIDIA H200");
  EXPECT_EQ(machines.nodes, 2);
  EXPECT_EQ(machines.devices_per_node, 2);
  EXPECT_EQ(machines.memory_bytes, 100);
  EXPECT_THAT(machines.node_names, ElementsAre("left", "right"));
}

TEST(Machines, DistinguishNodesOfTheSameName) {
  auto ranks = two_nodes_of_two();
  for (RankFacts& rank : ranks) rank.node_name = "host";
  EXPECT_THAT(machines_of("m", ranks).node_names, ElementsAre("host", "host#2"));
}

TEST(Machines, KeepTheWordsInBracketsOfADeviceThatRanksShare) {
  const RankFacts rank{0, 1, "n", "CPU, 2 threads (AMD EPYC)", false, 1};
  EXPECT_EQ(machines_of("m", {rank}).device, "CPU, 2 threads (AMD EPYC)");
}

TEST(Machines, OfUnequalNodesAreRefused) {
  auto ranks = two_nodes_of_two();
  ranks[3].ranks_on_node = 1;
  expect_refusal(ranks, "node left has 2 ranks, node right has 1", "--ntasks-per-node");
  ranks = two_nodes_of_two();
  ranks[1].node = 1;
  expect_refusal(ranks, "rank 1 is on node left: ranks do not stand in order", "--distribution=block");
}

TEST(Machines, OfSeveralKindsAreRefusedByNode) {
  auto ranks = two_nodes_of_two();
  ranks[2].device = "NVIDIA V100 (GPU-2)";
  expect_refusal(ranks, "the machines of this job differ: NVIDIA H200 on left, right; NVIDIA V100 on right\n",
                 "--constraint");
  ranks.clear();
  for (int r = 0; r < 8; ++r)
    ranks.push_back({r, 1, "n" + std::to_string(r), r == 0 ? "CPU, 1 thread" : "CPU, 2 threads", false, 1});
  expect_refusal(ranks, ": CPU, 1 thread on n0; CPU, 2 threads on n1, n2, n3, n4 and 3 more\n", "[[part]]");
}

TEST(Machines, WhoseRanksShareAGpuAreRefused) {
  auto ranks = two_nodes_of_two();
  ranks[1].device = ranks[0].device;
  expect_refusal(ranks, "ranks 0 and 1 share NVIDIA H200 (GPU-0)", "--gpus-per-task=1");
}

}  // namespace
}  // namespace alpa
