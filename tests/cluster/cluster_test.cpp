#include "libalpa/cluster/cluster.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/cluster/cost_model.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kTwoNodes = R"(
name = "pair"
device = "NVIDIA V100 16 GB"
nodes = 2
devices_per_node = 4
memory_gib = 13.5
f32_tflops = 14
bf16_tflops = 88
memory_gb_per_s = 765
launch_us = 5
within_node = { latency_us = 6, gb_per_s = 130 }
between_nodes = { latency_us = 30, gb_per_s = 2.9 }
)";

class ClusterFile : public testing::Test {
 protected:
  Cluster read(const std::string& text) {
    const std::filesystem::path path = folder_.path() / "c.toml";
    std::ofstream(path) << text;
    return read_cluster(path);
  }

  static std::string with(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  }

  TemporaryFolder folder_;
};

TEST_F(ClusterFile, IsReadInBytesAndSecondsWhateverItsUnits) {
  const Cluster cluster = read(kTwoNodes);
  EXPECT_EQ(cluster.name, "pair");
  EXPECT_EQ(cluster.device, "NVIDIA V100 16 GB");
  EXPECT_EQ(cluster.devices(), 8);
  EXPECT_EQ(cluster.memory_bytes, 27 * (std::int64_t{1} << 29));
  EXPECT_DOUBLE_EQ(cluster.f32_flops_per_s, 14e12);
  EXPECT_DOUBLE_EQ(cluster.bf16_flops_per_s, 88e12);
  EXPECT_DOUBLE_EQ(cluster.memory_bytes_per_s, 765e9);
  EXPECT_DOUBLE_EQ(cluster.launch_s, 5e-6);
  EXPECT_DOUBLE_EQ(cluster.within_node.latency_s, 6e-6);
  EXPECT_DOUBLE_EQ(cluster.between_nodes.bytes_per_s, 2.9e9);
}

TEST_F(ClusterFile, SaysWhichTypesItsDevicesComputeIn) {
  const Cluster v100 = read(with(kTwoNodes, "bf16_tflops", "f16_tflops"));
  EXPECT_DOUBLE_EQ(v100.flops_per_s(DType::f16), 88e12);
  EXPECT_EQ(v100.flops_per_s(DType::bf16), 0);
  const CostModel costs(v100);
  EXPECT_GT(costs.operator_seconds("add f16[8]", {8, 48, DType::f16}), 0);
  EXPECT_THAT(
      [&] {
        costs.operator_seconds("add bf16[8]", {8, 48, DType::bf16});
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("the model computes in bf16, the devices of cluster 'pair' (NVIDIA V100 16 GB) do "
                          "not: it has no bf16_tflops"),
                HasSubstr("try: precision = \"f32\" or \"f16\" in [training] of the model, or bf16_tflops in "
                          "the cluster's file if its devices have it"))));
}

TEST_F(ClusterFile, OfOneNodeNeedsNoLinkBetweenNodes) {
  std::string text = with(kTwoNodes, "nodes = 2", "nodes = 1");
  text = text.substr(0, text.find("between_nodes"));
  const Cluster cluster = read(text);
  EXPECT_EQ(cluster.between_nodes, cluster.within_node);
}

TEST_F(ClusterFile, ReportsAllItsFaultsAtOnce) {
  std::string text = with(kTwoNodes, "launch_us = 5", "launch_us = -5");
  text = with(text, "memory_gib = 13.5", "memory_gb = 13.5");
  text = with(text, "between_nodes", "among_nodes");
  EXPECT_THAT([&] { read(text); },
              ThrowsMessage<Error>(AllOf(HasSubstr("missing key 'memory_gib'"), HasSubstr("'memory_gb'"),
                                         HasSubstr("c.toml:10:"), HasSubstr("missing key 'between_nodes'"))));
}

class MoreMachines : public ClusterFile {
 protected:
  Cluster read_of(const Cluster& measured, const std::string& text) {
    const std::filesystem::path path = folder_.path() / "more.toml";
    std::ofstream(path) << text;
    return read_cluster_of(measured, path);
  }
};

TEST_F(MoreMachines, KeepWhatWasMeasured) {
  const Cluster measured = read(kTwoNodes);
  const Cluster cluster = read_of(measured, "nodes = 16\ndevices_per_node = 2\nmemory_gib = 10\n");
  Cluster expected = measured;
  expected.name = "more";
  expected.nodes = 16;
  expected.devices_per_node = 2;
  expected.memory_bytes = std::int64_t{10} << 30;
  EXPECT_EQ(cluster, expected);
}

TEST_F(MoreMachines, MaySayWhatWasMeasuredAsFarAsItAgrees) {
  const Cluster measured = read(kTwoNodes);
  const std::string about = with(with(kTwoNodes, "f32_tflops = 14", "f32_tflops = 13"), "V100 16 GB", "V100");
  Cluster expected = measured;
  expected.nodes = 4;
  EXPECT_EQ(read_of(measured, with(about, "nodes = 2", "nodes = 4")), expected);
}

TEST_F(MoreMachines, AreRefusedWhereTheyAreOthers) {
  const Cluster measured = read(kTwoNodes);
  const std::string slow = with(kTwoNodes, "gb_per_s = 2.9", "gb_per_s = 0.0005");
  EXPECT_THAT([&] { read_of(measured, with(slow, "f32_tflops = 14", "f32_tflops = 140")); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("more.toml' is not of the machines that the profile was measured on: "
                                  "f32_tflops is 140, measured 14 (10 x); "
                                  "between_nodes.gb_per_s is 0.0005, measured 2.9 (0.000172 x)\n"),
                        HasSubstr("leave out what was measured"))));
  EXPECT_THAT([&] { read_of(measured, with(kTwoNodes, "latency_us = 30", "latency_us = 0")); },
              ThrowsMessage<Error>(HasSubstr("between_nodes.latency_us is 0, measured 30 (0 x)\n")));
  EXPECT_THAT([&] { read_of(measured, with(kTwoNodes, "V100", "H100")); },
              ThrowsMessage<Error>(HasSubstr("measured on NVIDIA V100 16 GB, ")));
}

TEST_F(MoreMachines, SayALinkThatWasNotMeasured) {
  const std::string two = kTwoNodes,
                    one_node = with(two.substr(0, two.find("between_nodes")), "nodes = 2", "nodes = 1");
  const Cluster node = read(one_node), device = read(with(one_node, "per_node = 4", "per_node = 1"));
  EXPECT_THAT([&] { read_of(node, "nodes = 2\ndevices_per_node = 4\n"); },
              ThrowsMessage<Error>(HasSubstr("missing key 'between_nodes'")));
  EXPECT_THAT([&] { read_of(device, "nodes = 1\ndevices_per_node = 4\n"); },
              ThrowsMessage<Error>(HasSubstr("missing key 'within_node'")));
  EXPECT_EQ(read_of(node, two).between_nodes, read(two).between_nodes);
  EXPECT_EQ(read_of(device, one_node).within_node, node.within_node);
}

TEST_F(ClusterFile, HasNoMoreMachinesThanThereAreAndNoneBeyondMeasure) {
  for (const auto& [from, to, fault] :
       {std::tuple{"nodes = 2", "nodes = 65537", "'nodes': expected an integer, from 1 to 65536"},
        {"devices_per_node = 4", "devices_per_node = 1025",
         "'devices_per_node': expected an integer, from 1 to 1024"},
        {"nodes = 2\ndevices_per_node = 4", "nodes = 65536\ndevices_per_node = 1024",
         "c.toml:4:9: 65536 nodes of 1024 devices are more than 262144 devices"},
        {"f32_tflops = 14", "f32_tflops = 1e300",
         "'f32_tflops': expected a finite number, from 1e-12 to 1000000, got 1e+300"},
        {"gb_per_s = 130", "gb_per_s = 1e-300",
         "'within_node.gb_per_s': expected a finite number, from 1e-09"},
        {"launch_us = 5", "launch_us = 1e10",
         "'launch_us': expected a finite number, from 0 to 1000000000, got"},
        {"name = \"pair\"", "name = \"\"", "c.toml:2:8: 'name': expected a name"},
        {"V100", "\\u001b[2J", "'device': expected a name"}})
    EXPECT_THAT(([&, from = from, to = to] { read(with(kTwoNodes, from, to)); }),
                ThrowsMessage<Error>(HasSubstr(fault)));
}

TEST_F(ClusterFile, OfTheLargestClustersIsRead) {
  EXPECT_EQ(read(with(kTwoNodes, "nodes = 2", "nodes = 65536")).devices(), 262144);
}

TEST(ClusterPresets, AreAllReadable) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ALPA_SOURCE_DIR) + "/configs/clusters")) {
    const Cluster cluster = read_cluster(entry.path());
    EXPECT_EQ(cluster.name, entry.path().stem());
    // A number in the wrong unit is off by a thousand: no device here computes, stores or sends outside these
    // bounds.
    EXPECT_THAT(cluster.f32_flops_per_s, testing::AllOf(testing::Ge(1e9), testing::Le(1e15))) << cluster.name;
    EXPECT_THAT(cluster.memory_bytes_per_s, testing::AllOf(testing::Ge(1e9), testing::Le(1e13)))
        << cluster.name;
    EXPECT_THAT(cluster.memory_bytes, testing::AllOf(testing::Ge(1ll << 30), testing::Le(1ll << 38)))
        << cluster.name;
    for (const Link& link : {cluster.within_node, cluster.between_nodes}) {
      EXPECT_THAT(link.bytes_per_s, testing::AllOf(testing::Ge(1e8), testing::Le(1e12))) << cluster.name;
      EXPECT_THAT(link.latency_s, testing::AllOf(testing::Ge(1e-7), testing::Le(1e-3))) << cluster.name;
    }
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(ClusterFingerprint, ChangesWithEveryNumber) {
  const Cluster base{"a", "d", 2, 4, 1 << 30, 1e12, 2e12, 3e12, 1e11, 1e-6, {1e-6, 1e10}, {1e-5, 1e9}};
  std::set<std::string> seen{cluster_fingerprint(base)};
  EXPECT_EQ(cluster_fingerprint(Cluster(base)), *seen.begin());
  std::vector<Cluster> others(13, base);
  others[0].name = "b";
  others[1].device = "e";
  others[2].nodes = 3;
  others[3].devices_per_node = 5;
  others[4].memory_bytes += 1;
  others[5].f32_flops_per_s *= 1 + 1e-15;
  others[6].bf16_flops_per_s *= 2;
  others[7].memory_bytes_per_s *= 2;
  others[8].launch_s = 0;
  others[9].within_node.latency_s *= 2;
  others[10].within_node.bytes_per_s *= 2;
  others[11].between_nodes.latency_s *= 2;
  others[12].f16_flops_per_s *= 2;
  for (const Cluster& other : others) seen.insert(cluster_fingerprint(other));
  EXPECT_EQ(seen.size(), others.size() + 1);
}

}  // namespace
}  // namespace alpa
