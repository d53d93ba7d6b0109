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

constexpr const char* kTwoParts = R"(
name = "mixed"
devices_per_node = 4
between_nodes = { latency_us = 30, gb_per_s = 2.5 }
[[part]]
name = "old"
device = "NVIDIA V100 16 GB"
nodes = 3
memory_gib = 13
f32_tflops = 14
f16_tflops = 88
memory_gb_per_s = 765
launch_us = 4
within_node = { latency_us = 6, gb_per_s = 130 }
[[part]]
name = "new"
device = "NVIDIA A100 40 GB"
nodes = 1
memory_gib = 36
f32_tflops = 17.5
bf16_tflops = 235
f16_tflops = 235
memory_gb_per_s = 1320
launch_us = 5
within_node = { latency_us = 3, gb_per_s = 240 }
between_nodes = { latency_us = 20, gb_per_s = 10 }
nics_per_node = 4
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

TEST_F(ClusterFile, MaySayAtWhichRateThingsAreMovedBetweenMemories) {
  EXPECT_EQ(read(kTwoNodes).host_bytes_per_s, 0);
  const std::string given = with(kTwoNodes, "launch_us = 5", "launch_us = 5\nhost_gb_per_s = 12.5");
  EXPECT_EQ(read(given).host_bytes_per_s, 12.5e9);
  EXPECT_EQ(read(with(given, "launch_us = 5", "launch_us = 5\nhost_memory_gib = 512")).host_memory_bytes,
            std::int64_t{512} << 30);
  EXPECT_NE(cluster_fingerprint(read(given)), cluster_fingerprint(read(kTwoNodes)));
  const Cluster parts = read(with(kTwoParts, "launch_us = 5", "launch_us = 5\nhost_gb_per_s = 12.5"));
  EXPECT_EQ(parts.host_bytes_per_s, 0);  // what one part does not say is not known of all
  EXPECT_EQ(best_of_parts(parts).host_bytes_per_s, 12.5e9);
}

TEST_F(ClusterFile, MaySayHowMuchLongerComputationTakesBesideCommunication) {
  EXPECT_EQ(read(kTwoNodes).overlap_slowdown, 1);
  const std::string slow = with(kTwoNodes, "launch_us = 5", "launch_us = 5\noverlap_slowdown = 1.25");
  EXPECT_EQ(read(slow).overlap_slowdown, 1.25);
  const std::string part = with(kTwoParts, "launch_us = 5", "launch_us = 5\noverlap_slowdown = 1.25");
  const Cluster parts = read(part);
  EXPECT_EQ(parts.parts[0].overlap_slowdown, 1);
  EXPECT_EQ(parts.parts[1].overlap_slowdown, 1.25);
  EXPECT_EQ(parts.overlap_slowdown, 1.25);  // the worst
  EXPECT_EQ(best_of_parts(parts).overlap_slowdown, 1);
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
  MachinesBesideProfile beside(const Cluster& measured, const std::string& text) {
    const std::filesystem::path path = folder_.path() / "more.toml";
    std::ofstream(path) << text;
    return read_cluster_beside(measured, path);
  }
  /// Of those that are the measured ones.
  Cluster read_of(const Cluster& measured, const std::string& text) {
    const MachinesBesideProfile machines = beside(measured, text);
    EXPECT_EQ(machines.differences, "");
    return machines.cluster;
  }
};

TEST_F(MoreMachines, ComputeAsSlowlyBesideCommunicationAsWasMeasured) {
  Cluster measured = read(kTwoNodes);
  measured.overlap_slowdown = 1.5;
  EXPECT_EQ(read_of(measured, kTwoNodes).overlap_slowdown, 1.5);
  const std::string other = with(kTwoNodes, "launch_us = 5", "launch_us = 5\noverlap_slowdown = 1");
  EXPECT_EQ(beside(measured, other).differences, "overlap_slowdown is 1, measured 1.5 (0.667 x)");
}

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

TEST_F(MoreMachines, MayBeOthersWhichIsSaid) {
  const Cluster measured = read(kTwoNodes);
  const std::string slow = with(kTwoNodes, "gb_per_s = 2.9", "gb_per_s = 0.0005");
  const MachinesBesideProfile others = beside(measured, with(slow, "f32_tflops = 14", "f32_tflops = 140"));
  EXPECT_EQ(
      others.differences,
      "f32_tflops is 140, measured 14 (10 x); between_nodes.gb_per_s is 0.0005, measured 2.9 (0.000172 x)");
  EXPECT_DOUBLE_EQ(others.cluster.f32_flops_per_s, 140e12);
  EXPECT_DOUBLE_EQ(others.cluster.between_nodes.bytes_per_s, 5e5);
  EXPECT_EQ(beside(measured, with(kTwoNodes, "latency_us = 30", "latency_us = 0")).differences,
            "between_nodes.latency_us is 0, measured 30 (0 x)");
  EXPECT_EQ(beside(measured, with(kTwoNodes, "V100", "H100")).differences,
            "device is NVIDIA H100 16 GB, measured NVIDIA V100 16 GB");
}

TEST_F(MoreMachines, OfOtherDevicesSayAllFigures) {
  const Cluster measured = read(kTwoNodes);
  EXPECT_THAT([&] { beside(measured, with(with(kTwoNodes, "V100", "H100"), "launch_us = 5", "")); },
              ThrowsMessage<Error>(HasSubstr("missing key 'launch_us'")));
  EXPECT_THAT([&] { beside(measured, with(kTwoNodes, "NVIDIA V100", "CPU")); },
              ThrowsMessage<Error>(AllOf(HasSubstr("measured on NVIDIA V100 16 GB, "),
                                         HasSubstr("has CPU 16 GB: it says nothing of these"))));
}

TEST_F(MoreMachines, MayBeUnlike) {
  const MachinesBesideProfile others = beside(read(kTwoNodes), kTwoParts);
  EXPECT_EQ(others.cluster.parts.size(), 2u);
  EXPECT_THAT(others.differences, HasSubstr("device is NVIDIA V100 16 GB + NVIDIA A100 40 GB, measured "));
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
        {"launch_us = 5", "launch_us = 5\noverlap_slowdown = 0.9",
         "c.toml:11:20: 'overlap_slowdown': expected a finite number, from 1 to 1000, got 0.9"},
        {"launch_us = 5", "launch_us = 5\noverlap_slowdown = \"1.2\"",
         "'overlap_slowdown': expected a finite number, from 1 to 1000, got the string '1.2'"},
        {"name = \"pair\"", "name = \"\"", "c.toml:2:8: 'name': expected a name"},
        {"V100", "\\u001b[2J", "'device': expected a name"}})
    EXPECT_THAT(([&, from = from, to = to] { read(with(kTwoNodes, from, to)); }),
                ThrowsMessage<Error>(HasSubstr(fault)));
}

TEST_F(ClusterFile, OfTheLargestClustersIsRead) {
  EXPECT_EQ(read(with(kTwoNodes, "nodes = 2", "nodes = 65536")).devices(), 262144);
}

class UnlikeNodes : public ClusterFile {};

TEST_F(UnlikeNodes, AreReadAsPartsAndAsTheWorstOfThem) {
  const Cluster cluster = read(kTwoParts);
  EXPECT_EQ(cluster.name, "mixed");
  EXPECT_EQ(cluster.device, "NVIDIA V100 16 GB + NVIDIA A100 40 GB");
  EXPECT_EQ(cluster.nodes, 4);
  EXPECT_EQ(cluster.devices(), 16);
  ASSERT_EQ(cluster.parts.size(), 2u);
  const Cluster &old = cluster.parts[0], &recent = cluster.parts[1];
  EXPECT_EQ(old.name, "old");
  EXPECT_EQ(old.devices(), 12);
  EXPECT_DOUBLE_EQ(old.between_nodes.bytes_per_s, 2.5e9);  // as the file says of all
  EXPECT_DOUBLE_EQ(recent.between_nodes.bytes_per_s, 10e9);
  EXPECT_EQ(recent.nics_per_node, 4);
  EXPECT_EQ(cluster.memory_bytes, old.memory_bytes);
  EXPECT_EQ(cluster.f16_flops_per_s, old.f16_flops_per_s);
  EXPECT_EQ(cluster.bf16_flops_per_s, 0);  // which the old ones lack
  EXPECT_EQ(cluster.launch_s, recent.launch_s);
  EXPECT_EQ(cluster.between_nodes, old.between_nodes);
  EXPECT_EQ(cluster.nics_per_node, 1);
}

TEST_F(UnlikeNodes, OfOnePartAreEqual) {
  const std::string text = kTwoParts;
  const Cluster cluster = read(text.substr(0, text.rfind("[[part]]")));
  EXPECT_TRUE(cluster.parts.empty());
  EXPECT_EQ(cluster.nodes, 3);
  EXPECT_EQ(cluster.device, "NVIDIA V100 16 GB");
}

TEST_F(UnlikeNodes, ReportAllFaultsOfTheirFile) {
  for (const auto& [from, to, fault] :
       {std::tuple{"name = \"new\"\n", "", "c.toml:15:1: missing key 'name' in 'part[1]'"},
        {"name = \"new\"", "name = \"old\"", "c.toml:16:8: two parts are called 'old'"},
        {"nodes = 1\n", "nodes = 1\ndevices_per_node = 8\n",
         "part 'new' has 8 devices on a node, part 'old' has 4: expected as many"},
        {"NVIDIA A100 40 GB", "CPU", "part 'new' is of kind cpu, part 'old' of kind cuda: expected one kind"},
        {"devices_per_node = 4\n", "", "missing key 'devices_per_node'"},
        {"between_nodes = { latency_us = 30, gb_per_s = 2.5 }\n", "", "missing key 'between_nodes'"},
        {"devices_per_node = 4\n", "devices_per_node = 4\nmemory_gib = 3\n", "'memory_gib'"},
        {"nodes = 3", "nodes = 65536",
         "parts of 65537 nodes with 262148 devices, expected 65536 and 262144"}})
    EXPECT_THAT(([&, from = from, to = to] { read(with(kTwoParts, from, to)); }),
                ThrowsMessage<Error>(HasSubstr(fault)));
}

TEST_F(UnlikeNodes, NameThePartThatDoesNotComputeInAType) {
  EXPECT_THAT(
      [&] {
        CostModel(read(kTwoParts)).operator_seconds("add bf16[8]", {8, 48, DType::bf16});
      },
      ThrowsMessage<Error>(
          HasSubstr("the devices of cluster 'mixed' (NVIDIA V100 16 GB, part 'old') do not")));
}

TEST_F(UnlikeNodes, HaveAnotherDigestThanAnyOfTheirParts) {
  const Cluster cluster = read(kTwoParts);
  std::set<std::string> seen{cluster_fingerprint(cluster)};
  for (Cluster other : {cluster, cluster, cluster}) {
    seen.size() == 1   ? other.parts.clear()
    : seen.size() == 2 ? std::swap(other.parts[0], other.parts[1])
                       : void(other.parts[1].f32_flops_per_s *= 1 + 1e-15);
    seen.insert(cluster_fingerprint(other));
  }
  EXPECT_EQ(seen.size(), 4u);
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
  std::vector<Cluster> others(14, base);
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
  others[13].overlap_slowdown = 1.5;
  for (const Cluster& other : others) seen.insert(cluster_fingerprint(other));
  EXPECT_EQ(seen.size(), others.size() + 1);
}

}  // namespace
}  // namespace alpa
