#include "libalpa/base/collective_traffic.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace alpa {
namespace {

int doublings(int devices) { return std::bit_width(static_cast<unsigned>(devices - 1)); }

}  // namespace

CollectiveTraffic collective_traffic(CollectiveKind kind, GroupShape group, double bytes) {
  const double nodes = group.nodes, per_node = group.per_node;
  const int within = group.per_node > 1 ? 1 : 0, between = group.nodes > 1 ? 1 : 0;
  const CollectiveTraffic halves{bytes * (per_node - 1) / per_node, bytes * (nodes - 1) / (nodes * per_node),
                                 within, between};
  switch (kind) {
    case CollectiveKind::all_reduce:
      if (bytes * group.size() <= static_cast<double>(kGatheredAllReduceBytes))
        return {bytes * (per_node - 1) * nodes, bytes * (nodes - 1), doublings(group.per_node),
                doublings(group.nodes)};
      return {2 * halves.within_node, 2 * halves.between_nodes, 2 * within, 2 * between};
    case CollectiveKind::all_gather:
      if (bytes <= static_cast<double>(kDoublingAllGatherBytes))
        return {halves.within_node, halves.between_nodes, doublings(group.per_node), doublings(group.nodes)};
      return halves;
    case CollectiveKind::reduce_scatter:
      return halves;
    case CollectiveKind::all_to_all:
      return {bytes * (per_node - 1) / (nodes * per_node), bytes * (nodes - 1) / nodes, within, between};
    case CollectiveKind::shift:
    case CollectiveKind::send:
      return {within * bytes, between * bytes / per_node, within, between};
  }
  return {};
}

CollectiveTraffic owners_traffic(CollectiveKind kind, GroupShape group, std::span<const double> part_bytes,
                                 int rank) {
  assert(kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather);
  assert(std::ssize(part_bytes) == group.size());
  const int nodes = group.nodes, per_node = group.per_node;
  double all = 0, at_place = 0;
  for (int other = 0; other < group.size(); ++other) {
    all += part_bytes[other];
    if (other % per_node == rank % per_node) at_place += part_bytes[other];
  }
  const double own = part_bytes[rank];
  const int within = per_node > 1 ? 1 : 0, between = nodes > 1 ? 1 : 0;
  if (kind == CollectiveKind::reduce_scatter) return {all - at_place, at_place - own, within, between};
  return {at_place * (per_node - 1), own * (nodes - 1), within, between};
}

SumShares sum_shares(int nodes, int servers) {
  assert(servers == 0 || nodes > 1);
  if (servers > nodes) return {0, 1, servers};
  const std::int64_t n = nodes, k = servers;
  return {n - k, 2 * (n - 1), n * n + k * n - 2 * k};
}

CollectiveTraffic served_traffic(GroupShape group, int servers, double bytes) {
  CollectiveTraffic traffic = collective_traffic(CollectiveKind::all_reduce, group, bytes);
  const SumShares shares = sum_shares(group.nodes, servers);
  const double own = static_cast<double>(shares.node) / static_cast<double>(shares.all);
  traffic.between_nodes = bytes / group.per_node * (1 + own * (group.nodes - 2));
  return traffic;
}

bool is_worth_servers(GroupShape group, double bytes) {
  return group.nodes > 1 && bytes * group.size() > static_cast<double>(kGatheredAllReduceBytes);
}

std::int64_t collective_chunk_bytes(std::int64_t bytes, int devices) {
  constexpr std::int64_t kLeast = 512 << 10, kMost = 1 << 20;
  // Pieces of a chunk that many devices share still take longer on a link than their latency.
  constexpr std::int64_t kLeastPiece = 64 << 10;
  return std::clamp(bytes / 4, kLeast, std::max(kMost, devices * kLeastPiece));
}

}  // namespace alpa
