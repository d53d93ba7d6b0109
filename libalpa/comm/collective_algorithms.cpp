#include "libalpa/comm/collective_algorithms.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace alpa {
namespace {

std::byte* byte_at(void* base, std::int64_t offset) { return static_cast<std::byte*>(base) + offset; }
const std::byte* byte_at(const void* base, std::int64_t offset) {
  return static_cast<const std::byte*>(base) + offset;
}

/// Chunks, in bytes, of parts of which each of `devices` has one, of `most_bytes` at most: a chunk has the
/// bytes of its extent of every part, and where all are of that length, the usual size together.
TensorChunks chunks_of_parts(std::int64_t most_bytes, std::int64_t element, int devices) {
  const std::int64_t bytes = collective_chunk_bytes(most_bytes * devices, devices);
  return {most_bytes, std::max<std::int64_t>(bytes / element / devices, 1) * element};
}

/// body(from, to) for each of the others: the one this place receives from while it sends to another. All
/// begin with their neighbours, so that not everybody talks to the first at first.
template <class Body>
void for_each_other(int me, int count, Body body) {
  for (int apart = 1; apart < count; ++apart) body((me - apart + count) % count, (me + apart) % count);
}

int doubling_rounds(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

/// Of an all-gather by doubling among `ranks`, the round in which those 2^round apart exchange what they
/// have: blocks [rank, rank + held) modulo ranks, of `bytes` each at `blocks`.
template <class RankOf>
void fill_doubling(CollectiveRound& work, int round, int rank, int ranks, std::byte* blocks,
                   std::int64_t bytes, RankOf rank_of) {
  const int apart = 1 << round, held = std::min(apart, ranks - apart);
  const int to = (rank - apart + ranks) % ranks, from = (rank + apart) % ranks;
  const auto each_piece = [&](int first, auto body) {  // two where the blocks go round the end
    const int before_end = std::min(held, ranks - first);
    body(blocks + first * bytes, before_end * bytes);
    body(blocks, (held - before_end) * bytes);
  };
  each_piece(from, [&](std::byte* data, std::int64_t length) { work.receive(data, length, rank_of(from)); });
  each_piece(rank, [&](std::byte* data, std::int64_t length) { work.send(data, length, rank_of(to)); });
}

/// A tree of `ranks` with root 0: a chain, or one in which what has d ranks reaches 2 d with the next
/// message.
struct Tree {
  int ranks;
  bool is_chain;

  int parent(int rank) const {
    return is_chain ? rank - 1 : rank - static_cast<int>(std::bit_floor(static_cast<unsigned>(rank)));
  }
  template <class Body>
  void for_each_child(int rank, Body body) const {
    if (is_chain) {
      if (rank + 1 < ranks) body(rank + 1);
      return;
    }
    for (int apart = 1 << std::bit_width(static_cast<unsigned>(rank)); rank + apart < ranks; apart *= 2)
      body(rank + apart);
  }
};

}  // namespace

TensorExtent TensorExtent::part(std::int64_t begin, std::int64_t end, std::int64_t parts) const {
  const std::int64_t from = count * begin / parts, to = count * end / parts;
  return {first + from, to - from};
}

TensorExtent TensorChunks::operator[](std::int64_t chunk) const {
  return {chunk * each, std::min(each, count - chunk * each)};
}

ChunkedAllReduce::ChunkedAllReduce(const GroupPlace& place, const CollectiveCall& call)
    : values(call.to), element(dtype_bytes(call.dtype)) {
  const int devices = place.shape.size();
  me = place;
  assert(call.server_ranks % me.shape.per_node == 0);
  servers = call.server_ranks / me.shape.per_node;
  const int adding = me.shape.nodes - servers;
  shares = sum_shares(adding, servers);
  std::int64_t chunk_bytes = collective_chunk_bytes(call.bytes, devices);
  if (servers > 0) {
    // Most of a chunk goes one way at a time: the more there are, the more others go the other way meanwhile.
    constexpr std::int64_t kChunks = 16, kLeast = 128 << 10, kLeastPiece = 16 << 10;
    chunk_bytes = std::min(std::max({call.bytes / kChunks, kLeast, devices * kLeastPiece}), chunk_bytes / 2);
    flights = kMostFlights;
  }
  chunks = {call.bytes / element, chunk_bytes / element};
  rounds = 4;
  scratch_bytes = (chunks.each + devices) * element;  // pieces are up to an element longer than others
  if (servers > 0)                                    // what each adds to a part, and the sum
    scratch_bytes = std::max(
        scratch_bytes,
        (adding + 1) * element *
            (chunks.each * std::max(shares.node, shares.server) / shares.all / me.shape.per_node + 2));
}

TensorExtent ChunkedAllReduce::block(TensorExtent of, int node) const {
  const std::int64_t adding = me.shape.nodes - servers;
  const auto end = [&](int nodes) {
    const std::int64_t own = std::min<std::int64_t>(nodes, adding);
    return own * shares.node + (nodes - own) * shares.server;
  };
  return of.part(end(node), end(node + 1), shares.all);
}

void ChunkedAllReduce::fill(CollectiveRound& work, std::int64_t chunk, int round, std::byte* scratch) const {
  const int nodes = me.shape.nodes, per_node = me.shape.per_node, adding = nodes - servers;
  const bool serves = me.node >= adding;
  const auto share = [&](int place) { return chunks[chunk].part(place, per_node); };
  const auto block_of = [&](int node) { return block(share(me.place), node); };
  const auto data = [&](TensorExtent part) {
    return serves ? scratch + adding * part.count * element : byte_at(values, part.first * element);
  };
  // Of `ranks` each reduces the piece of its index that the first `givers` have, and then hands it to these.
  const auto reduce = [&](auto piece, int index, int ranks, int givers, auto rank_of) {
    const std::int64_t length = piece(index).count * element;
    for_each_other(index, ranks, [&](int from, int to) {
      if (from < givers) work.receive(scratch + from * length, length, rank_of(from));
      if (index < givers) work.send(data(piece(to)), piece(to).count * element, rank_of(to));
    });
    for (int i = 0; i < givers; ++i) work.add_part(i == index ? data(piece(index)) : scratch + i * length);
    work.reduce_parts(data(piece(index)), length);
  };
  const auto gather = [&](auto piece, int index, int ranks, int takers, auto rank_of) {
    for_each_other(index, ranks, [&](int from, int to) {
      if (index < takers) work.receive(data(piece(from)), piece(from).count * element, rank_of(from));
      if (to < takers) work.send(data(piece(index)), piece(index).count * element, rank_of(to));
    });
  };
  const auto on_node = [&](int place) { return me.peer_at(place); };
  const auto on_nodes = [&](int node) { return me.peer_on(node); };
  if (round == 0 && per_node > 1 && !serves) reduce(share, me.place, per_node, per_node, on_node);
  if (round == 1 && nodes > 1) reduce(block_of, me.node, nodes, adding, on_nodes);
  if (round == 2) gather(block_of, me.node, nodes, adding, on_nodes);
  if (round == 3 && !serves) gather(share, me.place, per_node, per_node, on_node);
}

GatherByDoubling::GatherByDoubling(const GroupPlace& place, const CollectiveCall& c, std::byte* room)
    : call(c), gathered(room) {
  me = place;
  chunks = {1, 1};
  rounds = doubling_rounds(me.shape.nodes) + doubling_rounds(me.shape.per_node) + 1;
  const void* mine = call.kind == CollectiveCall::Kind::all_reduce ? call.to : call.from;
  std::memcpy(part_of(me.rank()), mine, static_cast<std::size_t>(call.bytes));
}

/// Parts of the same place on their nodes lie together, as they come from other nodes together.
std::byte* GatherByDoubling::part_of(int rank) const {
  const int nodes = me.shape.nodes, per_node = me.shape.per_node;
  return gathered + (rank % per_node * nodes + rank / per_node) * call.bytes;
}

void GatherByDoubling::fill(CollectiveRound& work, std::int64_t, int round, std::byte*) const {
  const int nodes = me.shape.nodes, per_node = me.shape.per_node, between = doubling_rounds(nodes);
  if (round < between)
    return fill_doubling(work, round, me.node, nodes, part_of(me.place), call.bytes,
                         [&](int node) { return me.peer_on(node); });
  if (round + 1 < rounds)
    return fill_doubling(work, round - between, me.place, per_node, gathered, nodes * call.bytes,
                         [&](int place) { return me.peer_at(place); });
  if (call.kind == CollectiveCall::Kind::all_gather) {
    for (int rank = 0; rank < me.shape.size(); ++rank)
      work.copy(part_of(rank), byte_at(call.to, rank * call.bytes), call.bytes);
    return;
  }
  for (int node = 0; node < nodes; ++node) {
    for (int place = 0; place < per_node; ++place) work.add_part(part_of(node * per_node + place));
    work.reduce_parts(part_of(node * per_node), call.bytes);
  }
  for (int node = 0; node < nodes; ++node) work.add_part(part_of(node * per_node));
  work.reduce_parts(call.to, call.bytes);
}

ReduceToOwners::ReduceToOwners(const GroupPlace& place, const OwnedParts& owned, DType dtype)
    : parts(&owned) {
  me = place;
  chunks = chunks_of_parts(parts->most_bytes(), dtype_bytes(dtype), place.shape.size());
  rounds = 2;
  scratch_bytes = chunks.each * place.shape.size();
}

void ReduceToOwners::fill(CollectiveRound& work, std::int64_t chunk, int round, std::byte* scratch) const {
  const int nodes = me.shape.nodes, per_node = me.shape.per_node;
  const TensorExtent extent = chunks[chunk];
  const auto slot = [&](int index) { return scratch + index * chunks.each; };
  const auto for_each_stretch = [&](int owner, auto body) {
    parts->for_each_stretch(owner, extent.first, extent.count, body);
  };
  const auto receive = [&](int owner, std::byte* into, int from) {
    for_each_stretch(owner, [&](const auto& piece) { work.receive(into + piece.offset, piece.bytes, from); });
  };
  const auto send = [&](int owner, int to) {
    for_each_stretch(owner, [&](const auto& piece) { work.send(piece.data, piece.bytes, to); });
  };
  // What `ranks` have of that part: this one, which is one of them, has its own, the others' is in slots.
  const auto reduce = [&](int owner, int index, int ranks, bool is_result, auto slot_of) {
    for_each_stretch(owner, [&](const auto& piece) {
      for (int i = 0; i < ranks; ++i) work.add_part(i == index ? piece.data : slot_of(i) + piece.offset);
      work.reduce_parts(is_result ? piece.own : piece.data, piece.bytes);
    });
  };
  if (round == 0 && (per_node > 1 || nodes == 1)) {
    const auto slot_of = [&](int place, int node) { return slot(place * nodes + node); };
    for_each_other(me.place, per_node, [&](int from, int to) {
      for (int node = 0; node < nodes; ++node) {
        receive(me.peer_on(node), slot_of(from, node), me.peer_at(from));
        send(node * per_node + to, me.peer_at(to));
      }
    });
    for (int node = 0; node < nodes; ++node)
      reduce(me.peer_on(node), me.place, per_node, nodes == 1,
             [&](int place) { return slot_of(place, node); });
  }
  if (round == 1 && nodes > 1) {
    for_each_other(me.node, nodes, [&](int from, int to) {
      receive(me.rank(), slot(from), me.peer_on(from));
      send(me.peer_on(to), me.peer_on(to));
    });
    reduce(me.rank(), me.node, nodes, true, slot);
  }
}

BroadcastFromOwners::BroadcastFromOwners(const GroupPlace& place, const OwnedParts& owned) : parts(&owned) {
  me = place;
  chunks = chunks_of_parts(parts->most_bytes(), 1, place.shape.size());
  rounds = 2;
}

void BroadcastFromOwners::fill(CollectiveRound& work, std::int64_t chunk, int round, std::byte*) const {
  const int nodes = me.shape.nodes, per_node = me.shape.per_node;
  const TensorExtent extent = chunks[chunk];
  const auto for_each_stretch = [&](int owner, auto body) {
    parts->for_each_stretch(owner, extent.first, extent.count, body);
  };
  const auto receive = [&](int owner, int from) {
    for_each_stretch(owner, [&](const auto& piece) { work.receive(piece.data, piece.bytes, from); });
  };
  const auto send = [&](int owner, int to) {
    for_each_stretch(owner, [&](const auto& piece) { work.send(piece.own, piece.bytes, to); });
  };
  if (round == 0) {
    for_each_other(me.node, nodes, [&](int from, int to) {
      receive(me.peer_on(from), me.peer_on(from));
      send(me.rank(), me.peer_on(to));
    });
    for_each_stretch(me.rank(), [&](const auto& piece) { work.copy(piece.own, piece.data, piece.bytes); });
  }
  for_each_other(me.place, per_node, [&](int from, int to) {
    for (int node = 0; node < nodes; ++node) {
      if ((node == me.node) != (round == 0)) continue;  // this node's own go first
      receive(node * per_node + from, me.peer_at(from));
      send(me.peer_on(node), me.peer_at(to));
    }
  });
}

ChunkedAllToAll::ChunkedAllToAll(const GroupPlace& place, const CollectiveCall& c) : call(c) {
  me = place;
  chunks = chunks_of_parts(call.bytes, 1, place.shape.size());
}

void ChunkedAllToAll::fill(CollectiveRound& work, std::int64_t chunk, int, std::byte*) const {
  const std::int64_t first = chunks[chunk].first, bytes = chunks[chunk].count;
  const auto offset = [&](int block) { return block * call.bytes + first; };
  for_each_other(me.rank(), me.shape.size(), [&](int sender, int receiver) {
    work.receive(byte_at(call.to, offset(sender)), bytes, sender);
    work.send(byte_at(call.from, offset(receiver)), bytes, receiver);
  });
  work.copy(byte_at(call.from, offset(me.rank())), byte_at(call.to, offset(me.rank())), bytes);
}

BroadcastByTrees::BroadcastByTrees(const GroupPlace& place, const CollectiveCall& c)
    : call(c), is_long(c.bytes > kDoublingAllGatherBytes) {
  assert(call.root >= 0 && call.root < place.shape.size());
  me = place;
  chunks = {call.bytes, is_long ? collective_chunk_bytes(call.bytes, 1) : call.bytes};
  rounds = 2;
}

void BroadcastByTrees::fill(CollectiveRound& work, std::int64_t chunk, int round, std::byte*) const {
  const int nodes = me.shape.nodes, per_node = me.shape.per_node;
  const Tree over_nodes{nodes, is_long}, within_node{per_node, is_long};
  // Nodes and places are counted from the root's.
  const int root_node = call.root / per_node, root_place = call.root % per_node;
  const int node = (me.node - root_node + nodes) % nodes,
            place = (me.place - root_place + per_node) % per_node;
  const auto rank_of = [&](int other_node, int other_place) {
    return (other_node + root_node) % nodes * per_node + (other_place + root_place) % per_node;
  };
  const TensorExtent piece = chunks[chunk];
  std::byte* const mine = byte_at(call.to, piece.first);
  if (round == 0) {
    if (place > 0) work.receive(mine, piece.count, rank_of(node, within_node.parent(place)));
    if (place == 0 && node > 0) work.receive(mine, piece.count, rank_of(over_nodes.parent(node), 0));
    return;
  }
  if (place == 0)
    over_nodes.for_each_child(node, [&](int child) { work.send(mine, piece.count, rank_of(child, 0)); });
  within_node.for_each_child(place, [&](int child) { work.send(mine, piece.count, rank_of(node, child)); });
}

}  // namespace alpa
