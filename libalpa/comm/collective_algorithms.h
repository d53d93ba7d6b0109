#pragma once
#include <cstddef>
#include <cstdint>
#include <variant>

#include "libalpa/base/collective_traffic.h"
#include "libalpa/base/tensor_type.h"
#include "libalpa/comm/collective_round.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/comm/owned_parts.h"

namespace alpa {

/// A rank's place in a group of nodes with as many ranks on each.
struct GroupPlace {
  GroupShape shape;
  int node = 0, place = 0;  ///< place: among the ranks of the node

  int rank() const { return peer_at(place); }
  int peer_on(int other_node) const { return other_node * shape.per_node + place; }
  int peer_at(int other_place) const { return node * shape.per_node + other_place; }
};

/// Elements or bytes [first, first + count) of a tensor.
struct TensorExtent {
  std::int64_t first = 0, count = 0;
  TensorExtent part(int index, int parts) const { return part(index, index + 1, parts); }
  TensorExtent part(std::int64_t begin, std::int64_t end, std::int64_t parts) const;
};

/// A tensor of `count` elements or bytes in equal chunks, but for the last one.
struct TensorChunks {
  std::int64_t count = 0, each = 1;
  std::int64_t number() const { return (count + each - 1) / each; }
  TensorExtent operator[](std::int64_t chunk) const;
};

// The algorithms of comm/collectives.h as what one rank does: each chunk of the tensor passes through
// `rounds` rounds, and fill() says which messages and results a round has. `scratch` is the chunk's own, of
// scratch_bytes.

inline constexpr int kMostFlights = 6;

struct CollectiveAlgorithm {
  GroupPlace me;
  TensorChunks chunks;
  int flights = 3;  ///< chunks under way at a time, kMostFlights at most
  int rounds = 1;
  std::int64_t scratch_bytes = 0;
};

/// The last nodes may be servers, which have the sums of their parts in scratch memory.
struct ChunkedAllReduce : CollectiveAlgorithm {
  ChunkedAllReduce(const GroupPlace&, const CollectiveCall&);
  void fill(CollectiveRound&, std::int64_t chunk, int round, std::byte* scratch) const;

  void* values;  ///< null on a server
  std::int64_t element;
  int servers = 0;  ///< of the nodes
  SumShares shares;

 private:
  TensorExtent block(TensorExtent of, int node) const;  ///< which that node adds up
};

/// Short parts, by doubling: in round i a rank has the parts of 2^i ranks. The last round has what is made of
/// them, and no messages.
struct GatherByDoubling : CollectiveAlgorithm {
  /// `gathered` has room for the parts of all ranks; this rank's is put there now.
  GatherByDoubling(const GroupPlace&, const CollectiveCall&, std::byte* gathered);
  void fill(CollectiveRound&, std::int64_t chunk, int round, std::byte* scratch) const;

  CollectiveCall call;
  std::byte* gathered;

 private:
  std::byte* part_of(int rank) const;
};

/// A reduce-scatter is one of equal parts. `parts` outlives both of these.
struct ReduceToOwners : CollectiveAlgorithm {
  ReduceToOwners(const GroupPlace&, const OwnedParts& parts, DType);
  void fill(CollectiveRound&, std::int64_t chunk, int round, std::byte* scratch) const;

  const OwnedParts* parts;
};

/// An all-gather is one of equal parts.
struct BroadcastFromOwners : CollectiveAlgorithm {
  BroadcastFromOwners(const GroupPlace&, const OwnedParts& parts);
  void fill(CollectiveRound&, std::int64_t chunk, int round, std::byte* scratch) const;

  const OwnedParts* parts;
};

struct ChunkedAllToAll : CollectiveAlgorithm {
  ChunkedAllToAll(const GroupPlace&, const CollectiveCall&);
  void fill(CollectiveRound&, std::int64_t chunk, int round, std::byte* scratch) const;

  CollectiveCall call;
};

struct BroadcastByTrees : CollectiveAlgorithm {
  BroadcastByTrees(const GroupPlace&, const CollectiveCall&);
  void fill(CollectiveRound&, std::int64_t chunk, int round, std::byte* scratch) const;

  CollectiveCall call;
  bool is_long;  ///< by chains, else by trees
};

using AnyCollective = std::variant<ChunkedAllReduce, GatherByDoubling, ReduceToOwners, BroadcastFromOwners,
                                   ChunkedAllToAll, BroadcastByTrees>;

}  // namespace alpa
