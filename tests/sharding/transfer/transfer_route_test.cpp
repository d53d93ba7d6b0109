#include "libalpa/sharding/transfer/transfer_route.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "libalpa/sharding/transfer/transfer_price.h"
#include "tests/support/index_literals.h"

namespace alpa {
namespace {

constexpr double kRate = 1e9;

/// Nodes that take nothing but the time of their interfaces.
Cluster nodes_of(int devices, int nodes, int nics = 1) {
  Cluster cluster;
  cluster.name = "nodes";
  cluster.nodes = nodes;
  cluster.devices_per_node = devices;
  cluster.memory_bytes_per_s = cluster.f32_flops_per_s = 1e12;
  cluster.within_node = {0, 1e15};
  cluster.between_nodes = {0, kRate};
  cluster.nics_per_node = nics;
  return cluster;
}

/// Follows the messages: who sends something has it by then, and at the end each device has its tile, all of
/// whose elements came once.
void expect_complete(const Transfer& transfer, const TransferRoute& route) {
  std::map<std::pair<DeviceIndex, int>, std::vector<int>> got;  // times of each element
  for (std::size_t m = 0; m < route.messages.size(); ++m) {
    const TransferMessage& message = route.messages[m];
    const TransferTask& task = route.tasks[message.task];
    const std::int64_t elements = element_count(task.extent);
    ASSERT_LE(0, message.begin);
    ASSERT_LT(message.begin, message.end);
    ASSERT_LE(message.end, elements);
    if (message.is_passed_on()) {
      ASSERT_LT(message.after, static_cast<int>(m));
      const TransferMessage& before = route.messages[message.after];
      EXPECT_EQ(before.to, message.from);
      EXPECT_EQ(before.task, message.task);
      EXPECT_EQ(before.begin, message.begin);
      EXPECT_EQ(before.end, message.end);
    } else {
      EXPECT_TRUE(std::ranges::binary_search(task.holders, message.from));
    }
    std::vector<int>& times = got[{message.to, message.task}];
    times.resize(static_cast<std::size_t>(elements));
    for (std::int64_t e = message.begin; e < message.end; ++e) ++times[e];
  }
  std::map<DeviceIndex, std::int64_t> elements;
  for (const auto& [of, times] : got) {
    EXPECT_EQ(std::ranges::count(times, 1), std::ssize(times));
    EXPECT_TRUE(std::ranges::binary_search(route.tasks[of.second].receivers, of.first));
    elements[of.first] += std::ssize(times);
  }
  const DeviceMesh& to = transfer.to_mesh;
  for (DeviceIndex device = to.first_device; device < to.first_device + device_count(to.shape); ++device)
    EXPECT_EQ(elements[device], element_count(tile_shape(transfer.whole.shape, transfer.to, to.shape)));
}

TEST(TransferRoute, OfEveryStrategyBringsEachElementOnce) {
  for (const auto& word : transfer_strategy_words())
    for (const int chunks : {1, 3})
      for (const int nics : {1, 2})
        for (const char* from : {"RR", "S0R", "RS1", "S01R"})
          for (const char* to : {"RR", "S0R", "RS0", "S1S0"}) {
            SCOPED_TRACE(
                fmt::format("{} in {} chunks, {} NICs: {} -> {}", word.name, chunks, nics, from, to));
            const Transfer transfer{
                {DType::f32, {12, 20}}, {0_d, {2, 2}}, {4_d, {2, 2}}, parse_spec(from), parse_spec(to)};
            for (const int per_node : {1, 2, 4, 8}) {
              if (per_node < nics) continue;
              const TransferRoute route =
                  transfer_route(transfer, {word.value, chunks}, nodes_of(per_node, 8 / per_node, nics));
              expect_complete(transfer, route);
            }
            // A node of three begins among the senders and ends among the receivers.
            expect_complete(transfer, transfer_route(transfer, {word.value, chunks}, nodes_of(3, 3)));
          }
}

TEST(TransferRoute, OfADeviceThatHoldsItIsWithinTheDevice) {
  const Transfer transfer{{DType::f32, {8}}, {0_d, {4}}, {0_d, {4}}, parse_spec("R"), parse_spec("S0")};
  for (const auto& word : transfer_strategy_words()) {
    const TransferRoute route = transfer_route(transfer, {word.value, 1}, nodes_of(2, 2));
    expect_complete(transfer, route);
    for (const TransferMessage& message : route.messages) EXPECT_EQ(message.from, message.to);
  }
}

/// Bytes that leave the sender's node, of a tensor of one device that each of `hosts` x `devices` gets.
TEST(TransferRoute, SendsWhatTheFormulasSay) {
  constexpr std::int64_t elements = 960;
  for (const int hosts : {1, 2, 3})
    for (const int devices : {1, 2, 4}) {
      const Transfer transfer{{DType::f32, {elements}},
                              {0_d, {}},
                              {DeviceIndex(devices), {hosts, devices}},
                              parse_spec("R"),
                              parse_spec("R")};
      const Cluster cluster = nodes_of(devices, hosts + 1);
      const auto sent = [&](const TransferWay& way, bool by_sender) {
        std::int64_t sum = 0;
        for (const TransferMessage& message : transfer_route(transfer, way, cluster).messages)
          if (!is_on_one_node(message, cluster.devices_per_node) && message.is_passed_on() != by_sender)
            sum += message.elements();
        return sum;
      };
      const std::int64_t all = hosts * devices;
      EXPECT_EQ(sent({TransferStrategy::send_receive, 1}, true), all * elements);
      EXPECT_EQ(sent({TransferStrategy::local_all_gather, 1}, true), hosts * elements);
      EXPECT_EQ(sent({TransferStrategy::global_all_gather, 1}, true), elements);
      EXPECT_EQ(sent({TransferStrategy::broadcast, 16}, true), elements);
      EXPECT_EQ(sent({TransferStrategy::send_receive, 1}, false), 0);
      EXPECT_EQ(sent({TransferStrategy::local_all_gather, 1}, false), 0);
      // Each of the others' parts comes into each host by the ring once.
      EXPECT_EQ(sent({TransferStrategy::global_all_gather, 1}, false),
                hosts == 1 ? 0 : hosts * (all - 1) * elements / all);
      EXPECT_EQ(sent({TransferStrategy::broadcast, 16}, false), (hosts - 1) * elements);
    }
}

/// Seconds of a route, of the time of the whole tensor over one interface.
double times(const Transfer& transfer, const TransferWay& way, const Cluster& cluster,
             MulticastSearch search = MulticastSearch::order) {
  const CostModel costs(cluster);
  return transfer_seconds(transfer_route(transfer, way, cluster, search), transfer.whole.dtype, costs) /
         (static_cast<double>(byte_count(transfer.whole)) / kRate);
}

// MLSys'23, section 3.1: A hosts of D devices.
TEST(TransferSeconds, OfOneToManyAreThoseOfTheFormulas) {
  constexpr int chunks = 64;
  for (const int hosts : {1, 2, 3})
    for (const int devices : {1, 2, 4}) {
      const Transfer transfer{{DType::f32, {1 << 20}},
                              {0_d, {}},
                              {DeviceIndex(devices), {hosts, devices}},
                              parse_spec("R"),
                              parse_spec("R")};
      const Cluster cluster = nodes_of(devices, hosts + 1);
      const double all = hosts * devices;
      EXPECT_NEAR(times(transfer, {TransferStrategy::send_receive, 1}, cluster), all, 1e-3);
      EXPECT_NEAR(times(transfer, {TransferStrategy::local_all_gather, 1}, cluster), hosts, 1e-3);
      EXPECT_NEAR(times(transfer, {TransferStrategy::broadcast, chunks}, cluster), 1 + (hosts - 1.0) / chunks,
                  1e-3);
      const double ring = times(transfer, {TransferStrategy::global_all_gather, 1}, cluster);
      EXPECT_GE(ring, hosts == 1 ? 1 - 1e-3 : 1 + (all - devices) / all);
      EXPECT_LE(ring, 2.1);
      EXPECT_NEAR(least_transfer_seconds(transfer, CostModel(cluster)) * kRate / (4 << 20), 1, 1e-9);
    }
}

TEST(TransferSeconds, OfSeveralInterfacesAreThoseOfAPart) {
  const Transfer transfer{
      {DType::f32, {1 << 20}}, {0_d, {4}}, {4_d, {2, 4}}, parse_spec("R"), parse_spec("R")};
  EXPECT_NEAR(times(transfer, {TransferStrategy::broadcast, 64}, nodes_of(4, 3, 1)), 1, 0.05);
  EXPECT_NEAR(times(transfer, {TransferStrategy::broadcast, 64}, nodes_of(4, 3, 2)), 0.5, 0.05);
  EXPECT_NEAR(times(transfer, {TransferStrategy::broadcast, 64}, nodes_of(4, 3, 4)), 0.25, 0.05);
}

TEST(TransferSeconds, OfASlowNodeAreItsOwn) {
  Cluster fast = nodes_of(2, 1), slow = nodes_of(2, 1);
  slow.between_nodes.bytes_per_s /= 2;
  Cluster two_fast = nodes_of(2, 2);
  fast.name = "fast", slow.name = "slow", two_fast.name = "two";
  const Cluster cluster = cluster_of_parts("mixed", {fast, slow, two_fast});
  const Transfer transfer{
      {DType::f32, {1 << 20}}, {0_d, {}}, {2_d, {3, 2}}, parse_spec("R"), parse_spec("R")};
  // The chain comes to it last: it takes in at half the rate, and passes nothing on.
  EXPECT_NEAR(times(transfer, {TransferStrategy::broadcast, 64}, cluster), 2, 0.1);
}

struct Case {
  const char* name;
  MeshShape from_mesh, to_mesh;
  Shape shape;
  const char *from, *to;
  double bound;     ///< in times of the whole tensor over one interface
  double balanced;  ///< likewise, senders balanced by size alone
};

// MLSys'23, figure 6 and table 2, nodes of four devices; bounds as counted by hand.
const Case kManyToMany[] = {
    {"1", {2, 4}, {2, 4}, {64, 64, 8}, "S0RR", "S0RR", 0.5, 0.5},
    {"2", {2, 4}, {2, 4}, {64, 64, 8}, "RRR", "S0RR", 0.5, 0.5},
    {"3", {2, 4}, {2, 4}, {64, 64, 8}, "RS0R", "S0RR", 0.5, 0.75},
    {"4", {2, 4}, {2, 4}, {64, 64, 8}, "RS01R", "S01RR", 0.5, 0.94},
    {"5", {2, 4}, {2, 4}, {64, 64, 8}, "S1RR", "S0RR", 0.5, 0.75},
    {"6", {2, 4}, {3, 4}, {192, 64, 2}, "S0RR", "S0RR", 0.5, 1},
    {"7", {1, 4}, {2, 4}, {64, 64, 8}, "S1RR", "RRR", 1, 1},
    {"9", {2, 4}, {2, 4}, {64, 64, 8}, "RS0R", "RRS0", 0.5, 0.75},
};

TEST(TransferSeconds, OfManyToManyAreNearTheBound) {
  constexpr int chunks = 64;
  const Cluster cluster = nodes_of(4, 5);
  for (const Case& each : kManyToMany) {
    SCOPED_TRACE(each.name);
    const Transfer transfer{{DType::f32, each.shape},
                            {0_d, each.from_mesh},
                            {DeviceIndex(device_count(each.from_mesh)), each.to_mesh},
                            parse_spec(each.from),
                            parse_spec(each.to)};
    const TransferWay chain{TransferStrategy::broadcast, chunks};
    expect_complete(transfer, transfer_route(transfer, chain, cluster));
    const double best = times(transfer, chain, cluster);
    EXPECT_NEAR(least_transfer_seconds(transfer, CostModel(cluster)) * kRate /
                    static_cast<double>(byte_count(transfer.whole)),
                each.bound, 1e-6);
    EXPECT_LE(best, each.bound * (1 + 2.0 / chunks) + 1e-6);
    EXPECT_NEAR(times(transfer, chain, cluster, MulticastSearch::balanced), each.balanced, 0.05);
    EXPECT_GE(times(transfer, chain, cluster, MulticastSearch::none), best - 1e-9);
    for (const Word<TransferStrategy>& word : transfer_strategy_words())
      EXPECT_GE(times(transfer, {word.value, 1}, cluster), each.bound - 1e-6) << word.name;
  }
}

TEST(FastestWay, IsTheSimplestWhereNothingIsShared) {
  const CostModel costs(nodes_of(2, 4));
  const auto way = [&](const Shape& shape, const MeshShape& to_mesh, const char* to) {
    return transfer_way_text(fastest_way(
        {{DType::f32, shape}, {0_d, {2}}, {2_d, to_mesh}, parse_spec("S0"), parse_spec(to)}, costs));
  };
  EXPECT_EQ(way({1 << 20}, {2}, "S0"), "send-receive");
  EXPECT_EQ(way({1 << 20}, {2}, "R"), "local-all-gather");  // within the node all is free
  EXPECT_TRUE(way({1 << 20}, {3, 2}, "R").starts_with("broadcast in "));
}

TEST(FastestWay, HasNoMoreChunksThanLatencyAllows) {
  Cluster cluster = nodes_of(1, 4);
  const Transfer transfer{{DType::f32, {1 << 20}}, {0_d, {}}, {1_d, {3}}, parse_spec("R"), parse_spec("R")};
  const auto chunks = [&](double latency_s) {
    cluster.between_nodes.latency_s = latency_s;
    return fastest_way(transfer, CostModel(cluster), TransferStrategy::broadcast).chunks;
  };
  // Of T = 4.2 ms over 3 links, a chunk costs its latency: the best number is about sqrt(2 T / latency).
  EXPECT_EQ(chunks(1e-3), 2);
  EXPECT_EQ(chunks(1e-4), 8);
  EXPECT_EQ(chunks(1e-5), 32);
}

/// A node of two devices.
Cluster pair_on(const Link& between_nodes, int nics) {
  Cluster node = nodes_of(2, 1, nics);
  node.name = fmt::format("{} NICs", nics);
  node.within_node = {1e-6, 1e10};
  node.between_nodes = between_nodes;
  return node;
}

TEST(TransferSeconds, BetweenUnlikeNodesAreThoseOfTheSlowerEnd) {
  const Cluster slow = pair_on({4e-5, 5e8}, 1), fast = pair_on({1e-5, 1e9}, 2);
  const Cluster both = cluster_of_parts("pair", {slow, fast});
  const auto seconds = [](const Cluster& cluster, std::int64_t elements, DeviceIndex from, DeviceIndex to) {
    const ShardingSpec split = parse_spec("S0");
    const Transfer transfer{{DType::f32, {elements}}, {from, {2}}, {to, {2}}, split, split};
    return transfer_seconds(transfer_route(transfer, {}, cluster), DType::f32, CostModel(cluster));
  };
  for (const auto& [from, to] : {std::pair{0_d, 2_d}, {2_d, 0_d}})  // over the slow node's one interface
    for (const std::int64_t elements : {8, 2'000'000})
      EXPECT_DOUBLE_EQ(seconds(both, elements, from, to), 4e-5 + 4.0 * static_cast<double>(elements) / 5e8);
  Cluster equal = fast;
  equal.nodes = 2;
  EXPECT_DOUBLE_EQ(seconds(equal, 2'000'000, 0_d, 2_d), 1e-5 + 4e6 / 1e9);  // an interface for each
}

}  // namespace
}  // namespace alpa
