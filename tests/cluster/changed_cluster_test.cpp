#include "libalpa/cluster/changed_cluster.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/cluster/device_facts.h"

namespace alpa {
namespace {

Cluster shipped(const std::string& name) {
  return read_cluster(ALPA_SOURCE_DIR "/configs/clusters/" + name + ".toml");
}

TEST(ChangedCluster, IsTheSameWithoutAChange) {
  for (const char* name : {"p3.16xlarge-8", "local-4"}) EXPECT_EQ(changed(shipped(name), {}), shipped(name));
}

TEST(ChangedCluster, ScalesWhatTheFactorsName) {
  const Cluster before = shipped("p3.16xlarge-8");
  Cluster expected = before;
  expected.between_nodes.bytes_per_s = 2 * 2.9e9;
  expected.within_node.bytes_per_s = 0.5 * 130e9;
  expected.memory_bytes = before.memory_bytes * 4;
  EXPECT_EQ(changed(before, {.between_nodes = 2, .within_nodes = 0.5, .memory = 4}), expected);
}

TEST(ChangedCluster, ComputesFasterInAllThatComputationTakes) {
  const Cluster before = shipped("dgx-h100-16"), after = changed(before, {.compute = 2});
  EXPECT_EQ(after.f32_flops_per_s, 100e12);
  EXPECT_EQ(after.bf16_flops_per_s, 1380e12);
  EXPECT_EQ(after.f16_flops_per_s, 1380e12);
  EXPECT_EQ(after.memory_bytes_per_s, 5700e9);
  EXPECT_EQ(after.launch_s, 2e-6);
  EXPECT_EQ(after.within_node, before.within_node);
}

// So that a device that is asked for by its word has the figures of the cluster files, which people see.
TEST(ChangedCluster, OfAnotherDeviceHasTheFiguresOfTheShippedClusters) {
  const std::vector<std::pair<std::string, std::string>> shipped_with{
      {"V100", "p3.16xlarge-8"}, {"A100", "p4d.24xlarge-8"}, {"H100", "dgx-h100-16"}, {"H200", "h200-1"}};
  Cluster links = shipped("local-4");
  links.overlap_slowdown = 1.5;  // of its own devices
  for (const auto& [word, name] : shipped_with) {
    Cluster expected = shipped(name);
    expected.name = links.name;
    expected.nodes = links.nodes;
    expected.devices_per_node = links.devices_per_node;
    expected.within_node = links.within_node;
    expected.between_nodes = links.between_nodes;
    expected.nics_per_node = links.nics_per_node;
    EXPECT_EQ(changed(links, {.device = word}), expected) << word;
  }
}

TEST(ChangedCluster, RefusesADeviceThatIsNotKnownAndSaysWhichAre) {
  for (const std::string& word : device_words()) EXPECT_NO_THROW(changed({}, {.device = word}));
  EXPECT_THAT([] { changed({}, {.device = "H10"}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("did you mean 'H100'? one of V100, ")));
}

TEST(ChangeText, NamesWhatChanges) {
  EXPECT_EQ(change_text({}), "as it is");
  EXPECT_EQ(change_text({.between_nodes = 2, .memory = 0.5, .device = "H100"}),
            "device H100, between nodes x2, memory x0.5");
}

}  // namespace
}  // namespace alpa
