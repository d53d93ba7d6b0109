#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/comm/collective_algorithms.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/comm/owned_parts.h"
#include "libalpa/comm/wire.h"

namespace alpa {

/// The algorithms of collectives on host memory, over any wire: one at a time is under way, and goes on while
/// advance() is called.
///
/// A long tensor goes in chunks, some of which are under way at a time; each passes through rounds of
/// messages. What is between nodes goes between devices of the same place on their nodes, each of which takes
/// its share of the tensor, so that no byte passes a node's network interface twice:
///
///     reduce-scatter          sums within the node, to who has the share; sums over nodes, to whose it is
///     all-gather              the same backwards
///     all-reduce              both, in place; where there are servers, they have shares of the sum too
///     reduce to owners        a reduce-scatter with shares of any lengths, in pieces anywhere
///     broadcast from owners   likewise an all-gather
///     all-to-all              every block straight to its receiver
///     broadcast               a chain of nodes, within each a chain of devices
///
/// Short tensors (base/collective_traffic.h) go by doubling: in round i a rank has the parts of 2^i ranks.
/// Short pieces with owners are packed, a message for each peer.
/// What is sent is collective_traffic() of the group, owners_traffic() and served_traffic(); a long broadcast
/// of B bytes sends at most B within and B between nodes from each device.
///
/// Who shares a node is what the caller says, not where ranks run. An element's sum is that over nodes of its
/// sums within nodes, each in order of ranks, whatever the tensor's size, chunks and shares; bf16 and f16 are
/// added up in f32 and rounded after each of the two. Where nodes have different numbers of the group's
/// ranks, or ranks of a node do not follow one another, each rank counts as a node.
///
/// No memory is taken once calls of a size have been made.
class Collectives {
 public:
  /// The wire outlives this. Each rank is a node at first.
  explicit Collectives(Wire& wire);

  void set_nodes(std::vector<int> node_of_rank);
  /// Of some of the ranks, in their order.
  std::vector<int> nodes_of(const std::vector<int>& ranks) const;

  void start(const CollectiveCall&);
  Progress advance();  ///< of what was started; never waits

  const SentBytes& sent() const { return sent_; }
  void count_sent(int to, std::int64_t bytes);  ///< of a message that is none of these collectives'

  /// The most that messages to that rank, and from it, have (Wire::kMostBytesBetweenNodes).
  std::int64_t most_bytes_to(int rank) const {
    return is_on_node(rank) ? Wire::kMostBytes : Wire::kMostBytesBetweenNodes;
  }

 private:
  /// A chunk under way.
  struct Flight {
    std::int64_t chunk = 0;
    int round = 0;
    CollectiveRound work;
    std::vector<int> messages;  ///< under way, the first at the end
    std::vector<std::byte> scratch;
  };

  /// Whether that rank is on this one's node.
  bool is_on_node(int rank) const { return node_of_rank_[rank] == node_of_rank_[wire_.rank()]; }
  std::optional<AnyCollective> algorithm_of(const CollectiveCall&);
  const CollectiveAlgorithm& extent() const;  ///< of what is under way

  void begin_round(Flight&);
  void start_messages(Flight&);
  bool has_arrived(Flight&);
  void take_results(const Flight&);

  Wire& wire_;
  std::vector<int> node_of_rank_;
  GroupPlace me_;
  std::optional<AnyCollective> algorithm_;  ///< under way
  std::int64_t chunks_left_ = 0;
  DType dtype_ = DType::f32;
  Reduction reduction_ = Reduction::sum;
  std::array<Flight, kMostFlights> flights_;
  std::span<Flight> used_;
  std::vector<std::byte> gathered_;
  OwnedParts parts_;
  SentBytes sent_;
};

}  // namespace alpa
