// How long collectives take between emulated hosts, beside the time that their bytes need on the network
// interfaces and the price that they have under a profile of these hosts: of all ranks, of one group along a
// mesh axis (which no plan has while the other devices of its nodes idle, so it has no price), and of all
// groups of an axis at once.
//
//   bench_collectives [--check] [--hosts N] [--mbit N]
//
// Prints a row for each, and how many keep to collectives_targets.toml; with --check the exit status says
// whether all do. Eight ranks leave two cores no room for anything else that runs beside them, which makes
// measurements longer and never shorter: hosts with misses are measured once more, and the attempt with fewer
// counts.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/clock.h"
#include "libalpa/base/collective_traffic.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/cluster/profile_file.h"
#include "libalpa/comm/mpi_session.h"
#include "tests/h5/temporary_folder.h"
#include "tests/network/bench_on_hosts.h"

namespace alpa {
namespace {

constexpr int kRepetitions = 5;
// Calls of a sample follow each other until they have handled so much: short ones alone would be at the mercy
// of the scheduler, and of the tokens that a link has saved up while it was idle (64 or 256 KiB).
constexpr std::int64_t kSampleBytes = 8 << 20;
constexpr std::array kKinds{CollectiveKind::all_reduce, CollectiveKind::all_gather,
                            CollectiveKind::reduce_scatter, CollectiveKind::all_to_all};
constexpr std::array kKindNames{"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};

/// Groups of equal ranks, consecutive ones or those `apart` from each other.
struct GroupPattern {
  const char* name;
  GroupShape group;
  int apart;
  int groups;          ///< that work at once
  int groups_on_host;  ///< of these
};

std::vector<GroupPattern> patterns(int hosts, int per_host) {
  std::vector<GroupPattern> all{{"all ranks", {hosts, per_host}, 1, 1, 1},
                                {"one group of an axis", {hosts, 1}, per_host, 1, 1},
                                {"all groups of an axis", {hosts, 1}, per_host, per_host, per_host}};
  if (hosts > 2) {
    const int ranks = hosts * per_host;
    all.push_back({"all groups of an axis", {hosts / 2, per_host}, 1, 2, 1});
    all.push_back({"all groups of an axis", {2, 1}, ranks / 2, ranks / 2, per_host});
  }
  return all;
}

/// Each byte a rank has for others goes through its interface once: what collective_traffic() says.
double nic_seconds(const GroupPattern& pattern, CollectiveKind kind, double bytes, double mbit) {
  const CollectiveTraffic sent = collective_traffic(kind, pattern.group, bytes);
  return pattern.groups_on_host * pattern.group.per_node * sent.between_nodes / (mbit * 1e6 / 8);
}

void call(CollectiveKind kind, Communicator& group, Stream& stream, std::vector<float>& a,
          std::vector<float>& b, std::int64_t bytes) {
  const std::int64_t count = bytes / 4, each = count / group.size();
  switch (kind) {
    case CollectiveKind::all_reduce:
      return group.all_reduce(stream, a.data(), count, DType::f32, Reduction::sum);
    case CollectiveKind::all_gather:
      return group.all_gather(stream, a.data(), b.data(), each * 4);
    case CollectiveKind::reduce_scatter:
      return group.reduce_scatter(stream, a.data(), b.data(), each, DType::f32, Reduction::sum);
    default:
      return group.all_to_all(stream, a.data(), b.data(), each * 4);
  }
}

/// The part of each rank: a line of rank 0 for each case, with the median over repetitions of the slowest
/// rank's seconds.
int measure(int hosts, int per_host, const std::vector<std::string>& mebibytes) {
  MpiSession session(0);
  {
    const auto device = make_cpu_device(1);
    const auto stream = device->make_stream();
    const auto world = session.make_communicator(*device);
    world->set_nodes(consecutive_nodes(world->size(), per_host));
    for (const GroupPattern& pattern : patterns(hosts, per_host)) {
      const int members = pattern.group.size(), me = world->rank();
      const int color = pattern.apart == 1 ? me / members : me % pattern.apart;
      const auto group = world->split(color < pattern.groups ? color : -1);
      for (const CollectiveKind kind : kKinds)
        for (const std::string& size : mebibytes) {
          const std::int64_t bytes = std::stoll(size) << 20;
          std::vector<float> a(static_cast<std::size_t>(bytes / 4), 1), b(a.size());
          std::vector<double> slowest;
          for (int r = 0; r <= kRepetitions; ++r) {
            world->barrier();
            const double begin = monotonic_s();
            for (std::int64_t sent = 0; group && sent < kSampleBytes; sent += bytes)
              call(kind, *group, *stream, a, b, bytes);
            const auto calls = static_cast<double>((kSampleBytes + bytes - 1) / bytes);
            const float mine = static_cast<float>((monotonic_s() - begin) / calls);
            float most = mine;
            world->all_reduce(*stream, &most, 1, DType::f32, Reduction::max);
            if (r > 0) slowest.push_back(most);  // the first makes connections
            std::fill(a.begin(), a.end(), 1.0f);
          }
          if (me == 0) fmt::print("{}\n", median(slowest));
        }
    }
  }
  session.finish(0);
  return 0;
}

struct Targets {
  double largest_ratio, largest_price_error;
  std::int64_t ranks_on_host;
  std::vector<std::int64_t> hosts, rates_mbit, mebibytes;
};

Targets read_targets() {
  TomlDocument document = read_toml(NETWORK_TESTS "/collectives_targets.toml");
  TomlTable root = document.root();
  Targets targets{root.number("largest_ratio"),  root.number("largest_price_error"),
                  root.integer("ranks_on_host"), root.integers("hosts"),
                  root.integers("rates_mbit"),   root.integers("mebibytes")};
  document.finish();
  return targets;
}

/// Seconds in the order of measure(); none where hosts cannot be emulated.
std::optional<std::vector<double>> seconds_on_hosts(const Targets& targets, std::int64_t hosts,
                                                    std::int64_t mbit, const char* program) {
  std::string command = fmt::format("'{}' --measure {} {}", program, hosts, targets.ranks_on_host);
  for (const std::int64_t size : targets.mebibytes) command += fmt::format(" {}", size);
  const auto lines = lines_on_hosts(hosts, targets.ranks_on_host, std::to_string(mbit), command);
  if (!lines) return std::nullopt;
  std::vector<double> seconds;
  for (const std::string& line : *lines) seconds.push_back(std::stod(line));
  return seconds;
}

/// The prices under what alpa-profile measures there: of collectives alone, as it is given no operators.
CostModel profiled(const Targets& targets, std::int64_t hosts, std::int64_t mbit) {
  const TemporaryFolder folder;
  const std::string profile = folder.path() / "profile.h5", none = folder.path() / "none";
  std::ofstream(none).flush();
  lines_on_hosts(hosts, targets.ranks_on_host, std::to_string(mbit),
                 fmt::format("'{}/alpa-profile' '{}' --threads 1 --missing '{}' --log-level error --out '{}'",
                             ALPA_BIN, MODEL, none, profile));
  return CostModel(read_profile(profile));
}

/// Measures one setting of hosts and prints its rows; none where hosts cannot be emulated.
std::optional<Tally> measured_rows(const Targets& targets, std::int64_t hosts, std::int64_t mbit,
                                   const char* program) {
  const auto seconds = seconds_on_hosts(targets, hosts, mbit, program);
  if (!seconds) return std::nullopt;
  const CostModel costs = profiled(targets, hosts, mbit);
  const auto per_host = static_cast<int>(targets.ranks_on_host);
  Tally tally;
  std::size_t next = 0;
  for (const GroupPattern& pattern : patterns(static_cast<int>(hosts), per_host))
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
      for (const std::int64_t size : targets.mebibytes) {
        const auto bytes = static_cast<double>(size << 20);
        const double measured = seconds->at(next++);
        const double least = nic_seconds(pattern, kKinds[kind], bytes, static_cast<double>(mbit));
        fmt::print("{:>5} {:>5} {:22} {:>6} {:15} {:>4} {:>9.2f} {:>9.2f} {:>6.2f}{}", hosts, mbit,
                   pattern.name, fmt::format("{}x{}", pattern.group.nodes, pattern.group.per_node),
                   kKindNames[kind], size, measured * 1e3, least * 1e3, measured / least,
                   tally.hold(measured <= targets.largest_ratio * least));
        if (pattern.groups * pattern.group.size() == hosts * per_host) {
          const double price = costs.collective_seconds(kKinds[kind], pattern.group, bytes, per_host);
          fmt::print(" {:>9.2f} {:>6.2f}{}", price * 1e3, price / measured,
                     tally.hold(std::abs(price - measured) <= targets.largest_price_error * measured));
        }
        fmt::print("\n");
      }
  std::fflush(stdout);
  return tally;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) try {
  using namespace alpa;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() > 3 && words[0] == "--measure")
    return measure(std::stoi(words[1]), std::stoi(words[2]), {words.begin() + 3, words.end()});
  Targets targets = read_targets();
  bool check = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 < words.size() && words[i] == "--hosts") targets.hosts = {std::stoll(words[i + 1])};
    if (i + 1 < words.size() && words[i] == "--mbit") targets.rates_mbit = {std::stoll(words[i + 1])};
  }
  Tally tally;
  fmt::print("{:>5} {:>5} {:22} {:>6} {:15} {:>4} {:>9} {:>9} {:>6}  {:>9} {:>6}\n", "hosts", "Mbit",
             "groups", "shape", "collective", "MiB", "ms", "NIC's ms", "ratio", "price ms", "ratio");
  for (const std::int64_t hosts : targets.hosts)
    for (const std::int64_t mbit : targets.rates_mbit) {
      auto rows = measured_rows(targets, hosts, mbit, argv[0]);
      if (rows && rows->missed() > 0) {
        fmt::print("{} missed: measured once more\n", rows->missed());
        const auto again = measured_rows(targets, hosts, mbit, argv[0]);
        if (again && again->missed() < rows->missed()) rows = again;
      }
      if (!rows) return 77;
      tally.reached += rows->reached;
      tally.all += rows->all;
    }
  return tally.finish(check);
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
