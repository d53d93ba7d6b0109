#include "libalpa/comm/collectives.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <numeric>
#include <set>
#include <span>

#include "libalpa/comm/reduce.h"

namespace alpa {
namespace {

// MPICH over UCX sends longer messages by rendezvous. Over TCP its requests and answers wait behind the data
// of other messages, and links behind them: collectives of 8 MiB took 1.4 times as long at 200 Mbit/s.
constexpr std::int64_t kMostBytesBetweenNodes = 16 << 10;

std::byte* byte_at(void* base, std::int64_t offset) { return static_cast<std::byte*>(base) + offset; }
const std::byte* byte_at(const void* base, std::int64_t offset) {
  return static_cast<const std::byte*>(base) + offset;
}

/// Elements or bytes [first, first + count) of a tensor.
struct Extent {
  std::int64_t first = 0, count = 0;

  Extent part(int index, int parts) const {
    const std::int64_t begin = count * index / parts, end = count * (index + 1) / parts;
    return {first + begin, end - begin};
  }
};

/// A tensor of `count` elements in equal chunks, but for the last one.
struct Chunks {
  std::int64_t count, each;
  std::int64_t number() const { return (count + each - 1) / each; }
  Extent operator[](std::int64_t chunk) const { return {chunk * each, std::min(each, count - chunk * each)}; }
};

/// Chunks of the part that each of `devices` has of a tensor: of all parts together they have the usual size.
Chunks chunks_of_parts(std::int64_t count_each, std::int64_t element, int devices) {
  const std::int64_t bytes = collective_chunk_bytes(count_each * element * devices, devices);
  return {count_each, std::max<std::int64_t>(bytes / element / devices, 1)};
}

/// Shape of the group whose rank r is on node node_of_rank[r].
GroupShape shape_of(const std::vector<int>& node_of_rank) {
  const int ranks = static_cast<int>(node_of_rank.size());
  const auto nodes = static_cast<int>(std::set<int>(node_of_rank.begin(), node_of_rank.end()).size());
  const GroupShape even{nodes, ranks / nodes};
  for (int rank = 0; rank < ranks; ++rank)
    if (even.size() != ranks || node_of_rank[rank] != node_of_rank[rank / even.per_node * even.per_node])
      return {ranks, 1};
  return even;
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

Collectives::Collectives(Wire& wire) : wire_(wire) {
  std::vector<int> each_its_own(static_cast<std::size_t>(wire.size()));
  std::iota(each_its_own.begin(), each_its_own.end(), 0);
  set_nodes(std::move(each_its_own));
}

void Collectives::set_nodes(std::vector<int> node_of_rank) {
  assert(std::ssize(node_of_rank) == wire_.size());
  node_of_rank_ = std::move(node_of_rank);
  shape_ = shape_of(node_of_rank_);
  node_ = wire_.rank() / shape_.per_node;
  place_ = wire_.rank() % shape_.per_node;
}

std::vector<int> Collectives::nodes_of(const std::vector<int>& ranks) const {
  std::vector<int> nodes;
  for (const int rank : ranks) nodes.push_back(node_of_rank_[rank]);
  return nodes;
}

void Collectives::count_sent(int to, std::int64_t bytes) {
  (is_on_node(to) ? sent_.within_node : sent_.between_nodes) += bytes;
}

void Collectives::all_reduce(void* values, std::int64_t count, DType dtype, Reduction reduction) {
  if (wire_.size() == 1 || count == 0) return;
  dtype_ = dtype;
  reduction_ = reduction;
  const int nodes = shape_.nodes, per_node = shape_.per_node;
  const std::int64_t element = dtype_bytes(dtype), bytes = count * element;
  if (bytes * wire_.size() <= kGatheredAllReduceBytes) {
    gather_by_doubling(values, bytes);
    CollectiveRound& work = flights_[0].work;
    work.clear();
    for (int node = 0; node < nodes; ++node) {
      for (int place = 0; place < per_node; ++place) work.add_part(gathered(node * per_node + place, bytes));
      work.reduce_parts(gathered(node * per_node, bytes), bytes);
    }
    for (int node = 0; node < nodes; ++node) work.add_part(gathered(node * per_node, bytes));
    work.reduce_parts(values, bytes);
    return take_results(flights_[0]);
  }

  const Chunks chunks{count, collective_chunk_bytes(bytes, wire_.size()) / element};
  const auto data = [&](Extent part) { return byte_at(values, part.first * element); };
  // Pieces of a chunk are up to an element longer than others.
  run(chunks.number(), 4, (chunks.each + wire_.size()) * element,
      [&](CollectiveRound& work, std::int64_t chunk, int round, std::byte* scratch) {
        const auto share = [&](int place) { return chunks[chunk].part(place, per_node); };
        const auto block = [&](int node) { return share(place_).part(node, nodes); };
        // Of `ranks` each reduces the piece of its index, and then hands it to the others.
        const auto reduce = [&](auto piece, int me, int ranks, auto rank_of) {
          const std::int64_t length = piece(me).count * element;
          for_each_other(me, ranks, [&](int from, int to) {
            work.receive(scratch + from * length, length, rank_of(from));
            work.send(data(piece(to)), piece(to).count * element, rank_of(to));
          });
          for (int i = 0; i < ranks; ++i) work.add_part(i == me ? data(piece(me)) : scratch + i * length);
          work.reduce_parts(data(piece(me)), length);
        };
        const auto gather = [&](auto piece, int me, int ranks, auto rank_of) {
          for_each_other(me, ranks, [&](int from, int to) {
            work.receive(data(piece(from)), piece(from).count * element, rank_of(from));
            work.send(data(piece(me)), piece(me).count * element, rank_of(to));
          });
        };
        const auto on_node = [&](int place) { return peer_at(place); };
        const auto on_nodes = [&](int node) { return peer_on(node); };
        if (round == 0 && per_node > 1) reduce(share, place_, per_node, on_node);
        if (round == 1 && nodes > 1) reduce(block, node_, nodes, on_nodes);
        if (round == 2) gather(block, node_, nodes, on_nodes);
        if (round == 3) gather(share, place_, per_node, on_node);
      });
}

void Collectives::all_gather(const void* part, void* whole, std::int64_t bytes_each) {
  if (bytes_each == 0) return;
  const int size = wire_.size();
  const int nodes = shape_.nodes, per_node = shape_.per_node;
  if (size > 1 && bytes_each * size <= kDoublingAllGatherBytes) {
    gather_by_doubling(part, bytes_each);
    for (int rank = 0; rank < size; ++rank)
      std::memcpy(byte_at(whole, rank * bytes_each), gathered(rank, bytes_each),
                  static_cast<std::size_t>(bytes_each));
    return;
  }
  const Chunks chunks = chunks_of_parts(bytes_each, 1, size);
  run(chunks.number(), 2, 0, [&](CollectiveRound& work, std::int64_t chunk, int round, std::byte*) {
    const std::int64_t first = chunks[chunk].first, bytes = chunks[chunk].count;
    const auto data = [&](int rank) { return byte_at(whole, rank * bytes_each + first); };
    const std::byte* mine = byte_at(part, first);
    if (round == 0) {
      for_each_other(node_, nodes, [&](int from, int to) {
        work.receive(data(peer_on(from)), bytes, peer_on(from));
        work.send(mine, bytes, peer_on(to));
      });
      work.copy(mine, data(wire_.rank()), bytes);
    }
    for_each_other(place_, per_node, [&](int from, int to) {
      for (int node = 0; node < nodes; ++node) {
        if ((node == node_) != (round == 0)) continue;  // this node's own go first
        work.receive(data(node * per_node + from), bytes, peer_at(from));
        work.send(round == 0 ? mine : data(peer_on(node)), bytes, peer_at(to));
      }
    });
  });
}

void Collectives::reduce_scatter(void* whole, void* part, std::int64_t count_each, DType dtype,
                                 Reduction reduction) {
  if (count_each == 0) return;
  dtype_ = dtype;
  reduction_ = reduction;
  const int nodes = shape_.nodes, per_node = shape_.per_node;
  const std::int64_t element = dtype_bytes(dtype);
  const Chunks chunks = chunks_of_parts(count_each, element, wire_.size());
  run(chunks.number(), 2, chunks.each * element * wire_.size(),
      [&](CollectiveRound& work, std::int64_t chunk, int round, std::byte* scratch) {
        const Extent piece = chunks[chunk];
        const std::int64_t bytes = piece.count * element;
        const auto data = [&](int rank) {
          return byte_at(whole, (rank * count_each + piece.first) * element);
        };
        std::byte* const result = byte_at(part, piece.first * element);
        if (round == 0 && (per_node > 1 || nodes == 1)) {
          for_each_other(place_, per_node, [&](int from, int to) {
            for (int node = 0; node < nodes; ++node) {
              work.receive(scratch + (from * nodes + node) * bytes, bytes, peer_at(from));
              work.send(data(node * per_node + to), bytes, peer_at(to));
            }
          });
          for (int node = 0; node < nodes; ++node) {
            for (int place = 0; place < per_node; ++place)
              work.add_part(place == place_ ? data(peer_on(node)) : scratch + (place * nodes + node) * bytes);
            work.reduce_parts(nodes == 1 ? result : data(peer_on(node)), bytes);
          }
        }
        if (round == 1 && nodes > 1) {
          for_each_other(node_, nodes, [&](int from, int to) {
            work.receive(scratch + from * bytes, bytes, peer_on(from));
            work.send(data(peer_on(to)), bytes, peer_on(to));
          });
          for (int node = 0; node < nodes; ++node)
            work.add_part(node == node_ ? data(wire_.rank()) : scratch + node * bytes);
          work.reduce_parts(result, bytes);
        }
      });
}

void Collectives::all_to_all(const void* from, void* to, std::int64_t bytes_each) {
  if (bytes_each == 0) return;
  const int size = wire_.size(), rank = wire_.rank();
  const Chunks chunks = chunks_of_parts(bytes_each, 1, size);
  run(chunks.number(), 1, 0, [&](CollectiveRound& work, std::int64_t chunk, int, std::byte*) {
    const std::int64_t first = chunks[chunk].first, bytes = chunks[chunk].count;
    const auto offset = [&](int block) { return block * bytes_each + first; };
    for_each_other(rank, size, [&](int sender, int receiver) {
      work.receive(byte_at(to, offset(sender)), bytes, sender);
      work.send(byte_at(from, offset(receiver)), bytes, receiver);
    });
    work.copy(byte_at(from, offset(rank)), byte_at(to, offset(rank)), bytes);
  });
}

void Collectives::broadcast(void* data, std::int64_t bytes, int root) {
  assert(root >= 0 && root < wire_.size());
  if (bytes == 0) return;
  const int nodes = shape_.nodes, per_node = shape_.per_node;
  const bool is_long = bytes > kDoublingAllGatherBytes;
  const Tree over_nodes{nodes, is_long}, within_node{per_node, is_long};
  // Nodes and places are counted from the root's.
  const int root_node = root / per_node, root_place = root % per_node;
  const int node = (node_ - root_node + nodes) % nodes, place = (place_ - root_place + per_node) % per_node;
  const auto rank_of = [&](int other_node, int other_place) {
    return (other_node + root_node) % nodes * per_node + (other_place + root_place) % per_node;
  };
  const Chunks chunks{bytes, is_long ? collective_chunk_bytes(bytes, 1) : bytes};
  run(chunks.number(), 2, 0, [&](CollectiveRound& work, std::int64_t chunk, int round, std::byte*) {
    const Extent piece = chunks[chunk];
    std::byte* const mine = byte_at(data, piece.first);
    if (round == 0) {
      if (place > 0) work.receive(mine, piece.count, rank_of(node, within_node.parent(place)));
      if (place == 0 && node > 0) work.receive(mine, piece.count, rank_of(over_nodes.parent(node), 0));
      return;
    }
    if (place == 0)
      over_nodes.for_each_child(node, [&](int child) { work.send(mine, piece.count, rank_of(child, 0)); });
    within_node.for_each_child(place, [&](int child) { work.send(mine, piece.count, rank_of(node, child)); });
  });
}

/// Where the part of `rank` lies after gather_by_doubling(): those of the same place on their nodes together,
/// as they come from other nodes together.
std::byte* Collectives::gathered(int rank, std::int64_t bytes) {
  return gathered_.data() + (rank % shape_.per_node * shape_.nodes + rank / shape_.per_node) * bytes;
}

void Collectives::gather_by_doubling(const void* part, std::int64_t bytes) {
  const int nodes = shape_.nodes, per_node = shape_.per_node;
  const auto whole = static_cast<std::size_t>(wire_.size() * bytes);
  if (gathered_.size() < whole) gathered_.resize(whole);
  std::memcpy(gathered(wire_.rank(), bytes), part, static_cast<std::size_t>(bytes));
  const int between = doubling_rounds(nodes);
  run(1, between + doubling_rounds(per_node), 0,
      [&](CollectiveRound& work, std::int64_t, int round, std::byte*) {
        if (round < between)
          return fill_doubling(work, round, node_, nodes, gathered(place_, bytes), bytes,
                               [&](int node) { return peer_on(node); });
        fill_doubling(work, round - between, place_, per_node, gathered_.data(), nodes * bytes,
                      [&](int place) { return peer_at(place); });
      });
}

/// Chunk c is that of flight c modulo their number, so it begins when the one before it there has passed all
/// rounds. Each flight has a tag, as chunks may overtake each other; the rounds of one flight do not.
template <class Fill>
void Collectives::run(std::int64_t chunks, int rounds, std::int64_t scratch_bytes, Fill fill) {
  const auto used = std::span(flights_).first(
      static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(flights_), chunks)));
  const auto begin_round = [&](Flight& flight) {
    flight.work.clear();
    fill(flight.work, flight.chunk, flight.round, flight.scratch.data());
    start(flight, static_cast<int>(&flight - flights_.data()));
  };
  for (Flight& flight : used) {
    if (std::ssize(flight.scratch) < scratch_bytes)
      flight.scratch.resize(static_cast<std::size_t>(scratch_bytes));
    flight.chunk = &flight - flights_.data();
    flight.round = 0;
    flight.messages.clear();
    begin_round(flight);
  }
  for (std::int64_t done = 0; done < chunks;) {
    bool has_moved = false;
    for (Flight& flight : used) {
      while (flight.chunk < chunks && has_arrived(flight)) {
        has_moved = true;
        take_results(flight);
        if (++flight.round == rounds) {
          ++done;
          flight.round = 0;
          flight.chunk += std::ssize(used);
          if (flight.chunk >= chunks) break;
        }
        begin_round(flight);
      }
    }
    if (!has_moved) wire_.rest();
  }
}

void Collectives::start(Flight& flight, int tag) {
  const auto each_message = [&](int peer, std::int64_t bytes, auto body) {
    const std::int64_t most = is_on_node(peer) ? Wire::kMostBytes : kMostBytesBetweenNodes;
    for (std::int64_t first = 0; first < bytes; first += most)
      flight.messages.push_back(body(first, std::min(most, bytes - first)));
  };
  for (const auto& [data, bytes, from] : flight.work.receives)
    each_message(from, bytes, [&, to = data, peer = from](std::int64_t first, std::int64_t length) {
      return wire_.irecv(byte_at(to, first), length, peer, tag);
    });
  for (const auto& [data, bytes, to] : flight.work.sends) {
    each_message(to, bytes, [&, from = data, peer = to](std::int64_t first, std::int64_t length) {
      return wire_.isend(byte_at(from, first), length, peer, tag);
    });
    count_sent(to, bytes);
  }
  std::ranges::reverse(flight.messages);
}

/// All have to, so it is enough to look at the first that has not.
bool Collectives::has_arrived(Flight& flight) {
  while (!flight.messages.empty() && wire_.test(flight.messages.back())) flight.messages.pop_back();
  return flight.messages.empty();
}

void Collectives::take_results(const Flight& flight) {
  const CollectiveRound& work = flight.work;
  for (const auto& [first_part, part_count, into, bytes] : work.results) {
    const auto parts = std::span(work.parts).subspan(first_part, part_count);
    if (parts.size() > 1)
      reduce_in_order(parts, into, bytes / dtype_bytes(dtype_), dtype_, reduction_);
    else if (parts[0] != into)
      std::memcpy(into, parts[0], static_cast<std::size_t>(bytes));
  }
}

}  // namespace alpa
