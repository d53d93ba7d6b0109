#pragma once
#include <compare>
#include <cstdint>
#include <span>

namespace alpa {

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, all_to_all, shift, send };

/// What a collective's speed depends on: on how many nodes its members are, and how many on each.
struct GroupShape {
  int nodes = 1;
  int per_node = 1;
  int size() const { return nodes * per_node; }
  auto operator<=>(const GroupShape&) const = default;
};

/// What one group of devices moves in a collective.
struct CollectiveTraffic {
  double within_node = 0;    ///< bytes that a device sends to others of its node; the most of any
  double between_nodes = 0;  ///< bytes that leave a node, for each of the group's devices on it
  /// Messages that follow on one another, so that each adds its latency.
  int steps_within_node = 0, steps_between_nodes = 0;
  bool operator==(const CollectiveTraffic&) const = default;
};

/// All-reduces whose operands, those of all devices together, take no more than this gather them everywhere
/// and sum them there.
inline constexpr std::int64_t kGatheredAllReduceBytes = 64 << 10;

/// Likewise all-gathers (their result): these go by doubling, in fewer messages of the same bytes.
inline constexpr std::int64_t kDoublingAllGatherBytes = 64 << 10;

/// What the algorithms of comm/collectives.h send. `bytes` is the whole tensor handled by the group, as in
/// CollectiveSample: the result of an all-gather, the operand of a reduce-scatter, the local tensor of an
/// all-reduce or all-to-all, what each device passes on in a shift. With N nodes, p devices on each, B bytes:
///
///                              within the node    between nodes
///     reduce-scatter           B (p-1)/p          B (N-1)/(N p)
///     all-gather               B (p-1)/p          B (N-1)/(N p)
///     all-reduce               the two above, one after the other
///     all-reduce, gathered     B (p-1) N          B (N-1)
///     all-to-all               B (p-1)/(N p)      B (N-1)/N
///     shift, send              B                  B/p
///
/// Nothing but the gathered all-reduce sends more through a node's network interface, which carries p times
/// the second column, than any algorithm must: a node of a reduce-scatter gives away sums of all but its own
/// share, one of an all-gather receives all but its own (Patarasuk and Yuan, JPDC 2009, for p = 1; the split
/// within and between nodes is that of hierarchical all-reduce, Goyal et al. 2017, 4.2). Devices send these
/// bytes up to the rounding of pieces to whole elements: each of a tensor's chunks is cut into N p pieces
/// that differ by one element at most. Where members are not spread evenly over the nodes, each counts as
/// one on a node of its own.
CollectiveTraffic collective_traffic(CollectiveKind, GroupShape, double bytes);

/// What a rank sends, exactly, where shares of a tensor are of any lengths: rank r, which is at place r mod p
/// of node r / p, owns part_bytes[r] = b(r) of B bytes. With s(r) the sum of b over all ranks at its place:
///
///                              within the node    between nodes
///     reduce to owners         B - s(r)           s(r) - b(r)
///     broadcast from owners    s(r) (p-1)         b(r) (N-1)
///
/// `kind`: reduce_scatter or all_gather, which these are where all b are equal. No byte enters or leaves a
/// node twice here either. Of two ranks one may send little and receive much: the interface of the fullest
/// owner, with b bytes, takes in (or gives away) b (N-1), as in a reduce-scatter (all-gather) of b for every
/// rank. So the time is that of collective_traffic() of n b bytes, for n ranks.
CollectiveTraffic owners_traffic(CollectiveKind kind, GroupShape, std::span<const double> part_bytes,
                                 int rank);

/// Whose part of a tensor is how large where `servers` further nodes help `nodes` to add it up: in parts of
/// `all`, that of each node, and of each server. With these every network interface sends, and receives,
/// as many bytes; with more servers than nodes they have all of it (BytePS, OSDI'20, 4.1).
struct SumShares {
  std::int64_t node = 1, server = 0, all = 1;
};
SumShares sum_shares(int nodes, int servers);

/// What a device sends in an all-reduce that is helped by `servers` nodes, of as many devices each, which
/// have nothing to add (CollectiveCall::server_ranks). Through the interface of one of N nodes go
/// 2 N (N-1) / (N^2 + k N - 2 k) B with k <= N servers, so B with k = N, and 2 (N-1) / N B with none.
CollectiveTraffic served_traffic(GroupShape, int servers, double bytes);

/// Whether an all-reduce is worth a server's help: of bytes, not of latencies alone, over several nodes.
bool is_worth_servers(GroupShape, double bytes);

/// Chunks of a tensor follow each other through the steps of a collective, so that links within and between
/// nodes work at the same time. Bytes of a chunk of a tensor of `bytes` that `devices` share.
std::int64_t collective_chunk_bytes(std::int64_t bytes, int devices);

}  // namespace alpa
