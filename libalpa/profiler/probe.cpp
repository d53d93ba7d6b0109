#include "libalpa/profiler/probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/base/median.h"
#include "libalpa/cluster/device_words.h"

namespace alpa {
namespace {

constexpr double kLongEnough_s = 0.02;
constexpr std::int64_t kLargestProduct = 8192;
constexpr std::int64_t kStreamElements = 16 << 20;
constexpr double kOddShare = 0.9;          // of the median
constexpr std::int64_t kMoved = 32 << 20;  // more than a core's caches hold
constexpr std::int64_t kSmallMessage = 1 << 10, kLargeMessage = 4 << 20;

std::vector<double> rates(double amount, const Timing& timing) {
  std::vector<double> per_s;
  for (const double seconds : timing.rank_s) per_s.push_back(amount / seconds);
  return per_s;
}

void check_measured(const OperatorCase& each, const Timing& timing) {
  if (timing.has_failed())
    throw Error(ErrorKind::run_time, fmt::format("cannot measure '{}': {}", each.signature, timing.why),
                "a device that cannot do this cannot train");
}

OperatorCase product(const OpDef& einsum, DType type, std::int64_t n) {
  return OperatorCase::of(einsum, {{type, {n, n}}, {type, {n, n}}}, {{"equation", "m k, k n -> m n"}});
}

/// FLOP/s of every rank on a product that lasts long enough; the best of the sizes on the way, as small ones
/// do not fill a large device. Empty where the device has no such product.
std::vector<double> product_rates(const OpDef& einsum, DType type, Instrument& instrument, Timing& last) {
  std::vector<double> best;
  for (std::int64_t n = 256; n <= kLargestProduct; n *= 2) {
    const OperatorCase each = product(einsum, type, n);
    last = instrument.time(each);
    if (last.has_failed()) return best;
    const std::vector<double> now = rates(each.flops, last);
    if (best.empty() || median(now) > median(best)) best = now;
    if (last.median_s >= kLongEnough_s) break;
  }
  return best;
}

/// Latency from a small message, rate from what a large one takes longer.
Link link_of(GroupShape pair, Instrument& instrument) {
  const Timing small = instrument.time(CollectiveCase{CollectiveKind::send, pair, kSmallMessage});
  const Timing large = instrument.time(CollectiveCase{CollectiveKind::send, pair, kLargeMessage});
  if (small.has_failed() || large.has_failed())
    throw Error(ErrorKind::run_time,
                fmt::format("cannot measure messages between devices: {}", small.why + large.why));
  const double longer = std::max(large.median_s - small.median_s, 1e-9);
  return {small.median_s, static_cast<double>(kLargeMessage - kSmallMessage) / longer};
}

/// A product that lasts long enough beside the looks at what is communicated.
OperatorCase long_product(const OpDef& einsum, double flops_per_s) {
  std::int64_t n = 256;
  while (n < kLargestProduct && product(einsum, DType::f32, n).flops < kLongEnough_s * flops_per_s) n *= 2;
  return product(einsum, DType::f32, n);
}

/// Of computation beside communication. What repetitions differ by is none.
double slowdown_of(const OperatorCase& each, Instrument& instrument) {
  const auto [alone, beside] = instrument.time_beside_sums(each, kLargeMessage);
  if (alone.has_failed() || beside.has_failed()) return 1;
  const double noise_s = *std::ranges::max_element(alone.rank_spread_s) +
                         *std::ranges::max_element(beside.rank_spread_s),
               longer_s = beside.median_s - alone.median_s;
  return longer_s > noise_s ? std::min(beside.median_s / alone.median_s, kSlowdownRange.high) : 1;
}

/// As many as it looks like: a device that sends to another node while all others do takes longer than alone
/// by the number of those that it shares its interface with.
int nics_of(const Machines& machines, Instrument& instrument) {
  const GroupShape pair{2, 1};
  const Timing alone = instrument.time(CollectiveCase{CollectiveKind::send, pair, kLargeMessage}),
               together = instrument.time(CollectiveCase{CollectiveKind::shift, pair, kLargeMessage});
  if (alone.has_failed() || together.has_failed()) return 1;
  const auto sharing = static_cast<int>(
      std::lround(std::clamp(together.median_s / alone.median_s, 1.0, 1.0 * machines.devices_per_node)));
  return machines.devices_per_node / sharing;
}

}  // namespace

RankRates probe_rates(OpCatalog catalog, Instrument& instrument) {
  RankRates all;
  Timing last;
  const OpDef& einsum = catalog.find("einsum");
  all.f32_flops_per_s = product_rates(einsum, DType::f32, instrument, last);
  if (all.f32_flops_per_s.empty()) check_measured(product(einsum, DType::f32, 256), last);
  const std::vector<double> none(all.f32_flops_per_s.size(), 0.0);
  const auto rates_in = [&](DType type) {
    const std::vector<double> found = product_rates(einsum, type, instrument, last);
    return found.empty() ? none : found;
  };
  all.bf16_flops_per_s = rates_in(DType::bf16);
  all.f16_flops_per_s = rates_in(DType::f16);
  const TensorType stream{DType::f32, {kStreamElements}};
  const OperatorCase add = OperatorCase::of(catalog.find("add"), {stream, stream}, {});
  const Timing timing = instrument.time(add);
  check_measured(add, timing);
  all.memory_bytes_per_s = rates(add.bytes, timing);
  return all;
}

Cluster probe_cluster(const Machines& machines, const RankRates& all, OpCatalog catalog,
                      Instrument& instrument) {
  Cluster cluster;
  cluster.name = machines.name;
  cluster.device = machines.device;
  cluster.kind = kind_of_words(machines.device);
  cluster.nodes = machines.nodes;
  cluster.devices_per_node = machines.devices_per_node;
  cluster.memory_bytes = machines.memory_bytes;
  cluster.f32_flops_per_s = median(all.f32_flops_per_s);
  cluster.bf16_flops_per_s = median(all.bf16_flops_per_s);
  cluster.f16_flops_per_s = median(all.f16_flops_per_s);
  cluster.memory_bytes_per_s = median(all.memory_bytes_per_s);
  const OperatorCase tiny = OperatorCase::of(catalog.find("add"), {{DType::f32, {1}}, {DType::f32, {1}}}, {});
  const Timing launch = instrument.time(tiny);
  check_measured(tiny, launch);
  cluster.launch_s = launch.median_s;
  cluster.within_node = {launch.median_s, cluster.memory_bytes_per_s / 2};
  if (machines.devices_per_node > 1) cluster.within_node = link_of({1, 2}, instrument);
  cluster.between_nodes = machines.nodes > 1 ? link_of({2, 1}, instrument) : cluster.within_node;
  if (machines.nodes > 1) cluster.nics_per_node = nics_of(machines, instrument);
  if (machines.nodes > 1 && machines.devices_per_node == 1) cluster.within_node = cluster.between_nodes;
  if (const Timing moves = instrument.time_moves(kMoved); !moves.has_failed())
    cluster.host_bytes_per_s = static_cast<double>(kMoved) / moves.median_s;
  if (cluster.devices() > 1)
    cluster.overlap_slowdown =
        slowdown_of(long_product(catalog.find("einsum"), cluster.f32_flops_per_s), instrument);
  return cluster;
}

bool same_machines(const Cluster& cluster, const Machines& machines) {
  return cluster.device == machines.device && cluster.nodes == machines.nodes &&
         cluster.devices_per_node == machines.devices_per_node;
}

std::vector<NodeSample> node_samples(const Machines& machines, const RankRates& all) {
  std::vector<NodeSample> nodes;
  for (int node = 0; node < machines.nodes; ++node) {
    const auto sum = [&](const std::vector<double>& ranks) {
      const auto first = ranks.begin() + std::ptrdiff_t{node} * machines.devices_per_node;
      return std::accumulate(first, first + machines.devices_per_node, 0.0);
    };
    nodes.push_back({machines.node_names[node], sum(all.f32_flops_per_s), sum(all.bf16_flops_per_s),
                     sum(all.memory_bytes_per_s)});
  }
  return nodes;
}

std::vector<std::string> remarks_on(const std::vector<NodeSample>& nodes) {
  std::vector<double> flops, bytes;
  for (const NodeSample& node : nodes) {
    flops.push_back(node.f32_flops_per_s);
    bytes.push_back(node.memory_bytes_per_s);
  }
  std::vector<std::string> remarks;
  for (const NodeSample& node : nodes) {
    const bool computes = node.f32_flops_per_s < kOddShare * median(flops),
               streams = node.memory_bytes_per_s < kOddShare * median(bytes);
    const char* what = computes && streams ? "computes and streams" : computes ? "computes" : "streams";
    remarks.push_back(computes || streams ? fmt::format("{} more than 10 % below the median", what) : "");
  }
  return remarks;
}

std::string node_table(const std::vector<NodeSample>& nodes) {
  std::size_t widest = 4;
  for (const NodeSample& node : nodes) widest = std::max(widest, node.name.size());
  std::string text =
      fmt::format("{:<{}}  {:>13}  {:>13}  {:>9}\n", "node", widest, "GFLOP/s f32", "GFLOP/s bf16", "GB/s");
  const std::vector<std::string> remarks = remarks_on(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    text += fmt::format("{:<{}}  {:>13.1f}  {:>13.1f}  {:>9.2f}{}{}\n", nodes[i].name, widest,
                        nodes[i].f32_flops_per_s / 1e9, nodes[i].bf16_flops_per_s / 1e9,
                        nodes[i].memory_bytes_per_s / 1e9, remarks[i].empty() ? "" : "  ", remarks[i]);
  return text;
}

}  // namespace alpa
