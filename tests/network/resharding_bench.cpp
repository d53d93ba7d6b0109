// How long tensors take from mesh to mesh between emulated hosts, by each strategy and in each order, beside
// the time that the strategy's formula says: from one device to many, and from many to many (MLSys'23,
// sections 3 and 6.1, for hosts of two ranks); the same on the meshes of the paper, simulated.
//
//   bench_resharding [--check] [--mbit N] [--only CASE] [--rounds N]
//
// Times are in T, that of the whole tensor from one host to another, measured in turn with the rest. Prints
// how many rows keep to resharding_targets.toml; with --check the exit status says whether all do.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "libalpa/base/clock.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/comm/mpi_session.h"
#include "libalpa/sharding/transfer/transfer_price.h"
#include "tests/network/bench_on_hosts.h"
#include "tests/network/one_transfer.h"

namespace alpa {
namespace {

struct Case {
  std::string name;
  MeshShape from_mesh, to_mesh;
  Shape shape;  ///< of f32
  std::string from, to;
  bool is_largest = false;  ///< of one to many
};

/// MLSys'23, figure 5: one device to meshes of (hosts, devices).
std::vector<Case> one_to_many(const std::vector<std::int64_t>& mebibytes,
                              const std::vector<MeshShape>& meshes) {
  std::vector<Case> cases;
  for (const std::int64_t size : mebibytes)
    for (const MeshShape& to : meshes)
      cases.push_back({fmt::format("1 -> {} of {} MiB", mesh_text(to), size),
                       {},
                       to,
                       {size << 18},
                       "R",
                       "R",
                       size == std::ranges::max(mebibytes)});
  return cases;
}

/// MLSys'23, table 2 and figure 6, of hosts of two; unit tasks of `mebibytes`.
std::vector<Case> many_to_many(std::int64_t mebibytes) {
  const std::int64_t columns = mebibytes << 18;  // a row of the first dimension, of f32
  const auto of_rows = [&](std::int64_t rows) { return Shape{rows, 12, columns / 12 / 2 * 2}; };
  return {{"case 1", {2, 2}, {2, 2}, of_rows(2), "S0RR", "S0RR"},
          {"case 2", {2, 2}, {2, 2}, of_rows(2), "RRR", "S0RR"},
          {"case 3", {2, 2}, {2, 2}, of_rows(4), "RS0R", "S0RR"},
          {"case 4", {2, 2}, {2, 2}, of_rows(16), "RS01R", "S01RR"},
          {"case 5", {2, 2}, {2, 2}, of_rows(4), "S1RR", "S0RR"},
          {"case 6", {2, 2}, {3, 2}, of_rows(6), "S0RR", "S0RR"},
          {"case 7, 8", {1, 2}, {2, 2}, of_rows(2), "S1RR", "RRR"},
          {"case 9", {2, 2}, {2, 2}, of_rows(4), "RS0R", "RRS0"}};
}

/// The source begins at the first device, the destination on the next host.
Transfer transfer_of(const Case& c, int devices_on_host) {
  const int from = std::max(device_count(c.from_mesh), devices_on_host);
  return {{DType::f32, c.shape},
          {DeviceIndex(0), c.from_mesh},
          {DeviceIndex(from), c.to_mesh},
          parse_spec(c.from),
          parse_spec(c.to)};
}

/// Hosts as numbers.
Cluster hosts_of(double mbit, int devices_on_host, double within_host = 2e9) {
  Cluster cluster;
  cluster.name = "hosts";
  cluster.nodes = 8;
  cluster.devices_per_node = devices_on_host;
  cluster.memory_bytes_per_s = cluster.f32_flops_per_s = 1e10;
  cluster.within_node = {2e-5, within_host};
  cluster.between_nodes = {1.5e-4, mbit * 1e6 / 8 * 1448 / 1514};  // Ethernet, IP and TCP headers
  return cluster;
}

/// Emulated hosts, and what is measured on them.
struct Setting {
  std::string name;
  int hosts = 5, ranks_on_host = 2, nics = 1;
  int slow_host = -1;  ///< which has half the rate
  double mbit = 0;
  std::vector<Case> cases;

  Cluster cluster() const {
    Cluster equal = hosts_of(mbit, ranks_on_host);
    equal.nics_per_node = nics;
    if (slow_host < 0) return equal;
    Cluster before = equal, slow = hosts_of(mbit / 2, ranks_on_host), behind = equal;
    before.nodes = slow_host, slow.nodes = 1, behind.nodes = hosts - slow_host - 1;
    before.name = "before", slow.name = "slow", behind.name = "behind";
    return cluster_of_parts("hosts", {before, slow, behind});
  }
};

struct Method {
  const char* name;
  TransferStrategy strategy;
  MulticastSearch search = MulticastSearch::order;
};
constexpr std::array kMethods{
    Method{"send/receive", TransferStrategy::send_receive},
    Method{"local gather", TransferStrategy::local_all_gather},
    Method{"global gather", TransferStrategy::global_all_gather},
    Method{"chain, listed", TransferStrategy::broadcast, MulticastSearch::none},
    Method{"chain, balanced", TransferStrategy::broadcast, MulticastSearch::balanced},
    Method{"chain, ordered", TransferStrategy::broadcast, MulticastSearch::order},
};

/// Which of them alpa-plan takes.
std::size_t chosen(const Transfer& transfer, const Cluster& cluster) {
  const TransferStrategy strategy = fastest_way(transfer, CostModel(cluster)).strategy;
  if (strategy == TransferStrategy::broadcast) return kMethods.size() - 1;
  return static_cast<std::size_t>(std::ranges::find(kMethods, strategy, &Method::strategy) -
                                  kMethods.begin());
}

TransferRoute route_of(const Transfer& transfer, const Method& method, const Cluster& cluster) {
  const TransferWay way = fastest_way(transfer, CostModel(cluster), method.strategy);
  return transfer_route(transfer, way, cluster, method.search);
}

struct Targets {
  double to_three_hosts, of_bound, of_others;
  std::vector<std::int64_t> rates_mbit, mebibytes_to_many;
  std::int64_t unit_mebibytes;
};

Targets read_targets() {
  TomlDocument document = read_toml(NETWORK_TESTS "/resharding_targets.toml");
  TomlTable root = document.root();
  Targets targets{root.number("to_three_hosts"),      root.number("of_bound"),
                  root.number("of_others"),           root.integers("rates_mbit"),
                  root.integers("mebibytes_to_many"), root.integer("unit_mebibytes")};
  document.finish();
  return targets;
}

std::vector<Setting> settings_of(const Targets& targets, double mbit, const std::string& only) {
  // At a fifth of the rate so much takes as long.
  const auto scaled = [&](std::int64_t mebibytes) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(mebibytes) * mbit / 1000));
  };
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : targets.mebibytes_to_many) sizes.push_back(scaled(size));
  const std::vector<std::int64_t> largest{sizes.back()};
  std::vector<Setting> settings(4);
  settings[0] = {
      "5 hosts of 2 ranks", 5, 2, 1, -1, mbit, one_to_many(sizes, {{1, 1}, {1, 2}, {2, 2}, {3, 2}, {4, 2}})};
  for (Case& c : many_to_many(scaled(targets.unit_mebibytes))) settings[0].cases.push_back(std::move(c));
  settings[1] = {"2 hosts of 4 ranks", 2, 4, 1, -1, mbit, one_to_many(sizes, {{1, 3}, {1, 4}})};
  settings[2] = {
      "4 hosts of 2 ranks, the third at half the rate", 4, 2, 1, 2, mbit, one_to_many(largest, {{3, 2}})};
  settings[3] = {"3 hosts of 2 ranks, each with an interface",
                 3,
                 2,
                 2,
                 -1,
                 mbit,
                 {{"two interfaces", {1, 2}, {2, 2}, {sizes.back() << 18}, "R", "R", true}}};
  for (Setting& setting : settings)
    std::erase_if(setting.cases, [&](const Case& c) { return c.name.find(only) == std::string::npos; });
  return settings;
}

/// The part of each rank: for each case a line of rank 0 with T and the seconds of each method, each the
/// median over rounds in turn of the slowest rank's.
int measure(const Setting& setting, int rounds) {
  MpiSession session(0);
  {
    const auto device = make_cpu_device(1);
    const auto stream = device->make_stream();
    const auto world = session.make_communicator(*device);
    const int on_host = setting.ranks_on_host;
    world->set_nodes(consecutive_nodes(world->size(), on_host));
    const Cluster cluster = setting.cluster();
    for (const Case& c : setting.cases) {
      const Transfer transfer = transfer_of(c, on_host);
      std::vector<std::unique_ptr<OneTransfer>> ways;
      const ShardingSpec whole = replicated_spec(c.shape.size());
      const Transfer direct{transfer.whole, {DeviceIndex(0), {}}, {DeviceIndex(on_host), {}}, whole, whole};
      ways.push_back(std::make_unique<OneTransfer>(direct, transfer_route(direct, {}, cluster), *device,
                                                   *world, on_host));
      for (const Method& method : kMethods)
        ways.push_back(std::make_unique<OneTransfer>(transfer, route_of(transfer, method, cluster), *device,
                                                     *world, on_host));
      std::vector<std::vector<double>> seconds(ways.size());
      for (int round = 0; round <= rounds; ++round)
        for (std::size_t w = 0; w < ways.size(); ++w) {
          world->barrier();
          const double begin_s = monotonic_s();
          ways[w]->run();
          float most = static_cast<float>(monotonic_s() - begin_s);
          world->all_reduce(*stream, &most, 1, DType::f32, Reduction::max);
          if (round > 0) seconds[w].push_back(most);  // the first makes connections
          if (round == 0 && !ways[w]->has_it()) {
            fmt::print("rank {} has not got the tensor: {}, way {}\n", world->rank(), c.name, w);
            std::exit(1);
          }
        }
      if (world->rank() != 0) continue;
      for (const auto& of_way : seconds) fmt::print("{} ", median(of_way));
      fmt::print("\n");
      std::fflush(stdout);
    }
  }
  session.finish(0);
  return 0;
}

/// [case][way] Seconds; none where hosts cannot be emulated.
std::optional<std::vector<std::vector<double>>> seconds_on_hosts(const Setting& setting, int number,
                                                                 int rounds, const std::string& only,
                                                                 const char* program) {
  const auto lines = lines_on_hosts(
      setting.hosts, setting.ranks_on_host, fmt::format("{}", setting.mbit),
      fmt::format("'{}' --measure {} {} {} '{}'", program, setting.mbit, number, rounds, only),
      fmt::format("NICS={} SLOW_HOST={}:{}", setting.nics, setting.slow_host, setting.mbit / 2));
  if (!lines) return std::nullopt;
  std::vector<std::vector<double>> seconds;
  for (const std::string& line : *lines) {
    std::istringstream numbers(line);
    seconds.emplace_back(std::istream_iterator<double>(numbers), std::istream_iterator<double>());
  }
  return seconds;
}

void print_heading(const char* what) {
  fmt::print("\n{}\n{:>22} {:>8} {:>6}", what, "case", "T ms", "bound");
  for (const Method& method : kMethods) fmt::print(" {:>15}", method.name);
  fmt::print("  as planned\n");
}

/// By the formulas, in T; of a network that does not wait.
struct Predicted {
  double bound = 0;
  std::size_t chosen = 0;
  std::array<double, kMethods.size()> methods{};
};

Predicted predicted(const Transfer& transfer, const Cluster& cluster, const Cluster& of_whole) {
  const CostModel costs(cluster);
  const double whole_s =
      CostModel(of_whole).send_seconds(false, static_cast<double>(byte_count(transfer.whole)));
  Predicted times;
  times.chosen = chosen(transfer, cluster);
  times.bound = least_transfer_seconds(transfer, costs) / whole_s;
  for (std::size_t m = 0; m < kMethods.size(); ++m)
    times.methods.at(m) =
        transfer_seconds(route_of(transfer, kMethods.at(m), cluster), DType::f32, costs) / whole_s;
  return times;
}

bool measured_rows(const Targets& targets, const Setting& setting, int number, int rounds,
                   const std::string& only, const char* program, Tally& tally) {
  if (setting.cases.empty()) return true;
  const auto seconds = seconds_on_hosts(setting, number, rounds, only, program);
  if (!seconds) return false;
  print_heading(
      fmt::format("{} Mbit/s, {}: measured (as the formulas say), in T", setting.mbit, setting.name).c_str());
  for (std::size_t c = 0; c < setting.cases.size(); ++c) {
    const Case& of = setting.cases[c];
    const std::vector<double>& times = seconds->at(c);
    const Predicted says =
        predicted(transfer_of(of, setting.ranks_on_host), setting.cluster(), hosts_of(setting.mbit, 1));
    fmt::print("{:>22} {:>8.1f} {:>6.2f}", of.name, 1e3 * times.at(0), says.bound);
    for (std::size_t m = 0; m < kMethods.size(); ++m)
      fmt::print(" {:>6.2f} ({:>6.2f})", times.at(m + 1) / times[0], says.methods.at(m));
    const double taken = times[says.chosen + 1] / times[0], others = std::min(times[1], times[2]) / times[0];
    fmt::print("  {}", kMethods.at(says.chosen).name);
    if (of.name.starts_with("case"))
      fmt::print(", of bound {:.2f}{} of others {:.2f}{}", taken / says.bound,
                 tally.hold(taken <= targets.of_bound * says.bound), taken / others,
                 tally.hold(taken <= targets.of_others * others));
    else if (setting.slow_host >= 0 || setting.nics > 1)
      fmt::print(", of bound {:.2f}{}", taken / says.bound,
                 tally.hold(taken <= targets.of_bound * says.bound));
    else if (of.is_largest && of.to_mesh == MeshShape{3, 2})
      fmt::print(", of T {:.2f}{}", taken, tally.hold(taken <= targets.to_three_hosts));
    fmt::print("\n");
  }
  std::fflush(stdout);
  return true;
}

/// The meshes of the paper, hosts of four devices at 10 Gbit/s, by the price that plans have.
void simulated_rows() {
  constexpr double mbit = 10'000, nvlink = 5e10;
  constexpr int devices = 4;
  const Cluster cluster = hosts_of(mbit, devices, nvlink);
  print_heading(fmt::format("{} Mbit/s, hosts of {} devices, simulated, in T", mbit, devices).c_str());
  std::vector<Case> cases;
  for (const MeshShape& to : {MeshShape{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {3, 2}, {4, 2}})
    cases.push_back({"1 -> " + mesh_text(to) + " of 1 GiB", {}, to, {1 << 28}, "R", "R"});
  const Shape shape{1024, 1024, 512}, shape_of_6{3072, 1024, 170};
  for (const auto& [name, from_mesh, to_mesh, from, to] :
       {std::tuple{"case 1", MeshShape{2, 4}, MeshShape{2, 4}, "S0RR", "S0RR"},
        {"case 2", {2, 4}, {2, 4}, "RRR", "S0RR"},
        {"case 3", {2, 4}, {2, 4}, "RS0R", "S0RR"},
        {"case 4", {2, 4}, {2, 4}, "RS01R", "S01RR"},
        {"case 5", {2, 4}, {2, 4}, "S1RR", "S0RR"},
        {"case 6", {2, 4}, {3, 4}, "S0RR", "S0RR"},
        {"case 7, 8", {1, 4}, {2, 4}, "S1RR", "RRR"},
        {"case 9", {2, 4}, {2, 4}, "RS0R", "RRS0"}})
    cases.push_back({name, from_mesh, to_mesh, std::string(name) == "case 6" ? shape_of_6 : shape, from, to});
  for (const Case& c : cases) {
    Transfer transfer = transfer_of(c, devices);
    // Two devices of a host of the paper's four are a host of two.
    const bool of_two = c.to_mesh.size() == 2 && c.to_mesh[0] > 1 && c.to_mesh[1] == 2;
    const Cluster hosts = of_two ? hosts_of(mbit, 2, nvlink) : cluster;
    if (of_two) transfer = transfer_of(c, 2);
    const Predicted says = predicted(transfer, hosts, hosts);
    const double whole_s =
        CostModel(hosts).send_seconds(false, static_cast<double>(byte_count(transfer.whole)));
    fmt::print("{:>22} {:>8.1f} {:>6.2f}", c.name, 1e3 * whole_s, says.bound);
    for (const double times : says.methods) fmt::print(" {:>15.2f}", times);
    fmt::print("  {}\n", kMethods.at(says.chosen).name);
  }
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) try {
  using namespace alpa;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() > 4 && words[0] == "--measure")
    return measure(settings_of(read_targets(), std::stod(words[1]), words[4]).at(std::stoul(words[2])),
                   std::stoi(words[3]));
  Targets targets = read_targets();
  bool check = false;
  int rounds = 3;
  std::string only;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 < words.size() && words[i] == "--mbit") targets.rates_mbit = {std::stoll(words[i + 1])};
    if (i + 1 < words.size() && words[i] == "--rounds") rounds = std::stoi(words[i + 1]);
    if (i + 1 < words.size() && words[i] == "--only") only = words[i + 1];
  }
  Tally tally;
  simulated_rows();
  for (const std::int64_t mbit : targets.rates_mbit) {
    const std::vector<Setting> settings = settings_of(targets, static_cast<double>(mbit), only);
    for (std::size_t i = 0; i < settings.size(); ++i)
      if (!measured_rows(targets, settings[i], static_cast<int>(i), rounds, only, argv[0], tally)) return 77;
  }
  return tally.finish(check);
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
