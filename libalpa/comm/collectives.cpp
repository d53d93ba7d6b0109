#include "libalpa/comm/collectives.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <set>

#include "libalpa/comm/reduce.h"

namespace alpa {
namespace {

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

}  // namespace

Collectives::Collectives(Wire& wire) : wire_(wire) {
  std::vector<int> each_its_own(static_cast<std::size_t>(wire.size()));
  std::iota(each_its_own.begin(), each_its_own.end(), 0);
  set_nodes(std::move(each_its_own));
}

void Collectives::set_nodes(std::vector<int> node_of_rank) {
  assert(std::ssize(node_of_rank) == wire_.size());
  node_of_rank_ = std::move(node_of_rank);
  const GroupShape shape = shape_of(node_of_rank_);
  me_ = {shape, wire_.rank() / shape.per_node, wire_.rank() % shape.per_node};
}

std::vector<int> Collectives::nodes_of(const std::vector<int>& ranks) const {
  std::vector<int> nodes;
  for (const int rank : ranks) nodes.push_back(node_of_rank_[rank]);
  return nodes;
}

void Collectives::count_sent(int to, std::int64_t bytes) {
  (is_on_node(to) ? sent_.within_node : sent_.between_nodes) += bytes;
}

/// None where nothing is to be done.
std::optional<AnyCollective> Collectives::algorithm_of(const CollectiveCall& call) {
  using Kind = CollectiveCall::Kind;
  const int size = wire_.size();
  const auto by_doubling = [&] {
    const auto whole = static_cast<std::size_t>(size * call.bytes);
    if (gathered_.size() < whole) gathered_.resize(whole);
    return GatherByDoubling(me_, call, gathered_.data());
  };
  const auto set_equal_parts = [&](const void* whole, const void* own) {
    parts_.assign_equal(const_cast<void*>(whole), call.bytes, size, wire_.rank(), const_cast<void*>(own));
  };
  if (call.bytes == 0 && total_bytes(call.pieces) == 0) return std::nullopt;
  switch (call.kind) {
    case Kind::all_reduce:
      if (size == 1) return std::nullopt;
      if (call.server_ranks == 0 && call.bytes * size <= kGatheredAllReduceBytes) return by_doubling();
      return ChunkedAllReduce(me_, call);
    case Kind::all_gather:
      if (size > 1 && call.bytes * size <= kDoublingAllGatherBytes) return by_doubling();
      set_equal_parts(call.to, call.from);
      return BroadcastFromOwners(me_, parts_);
    case Kind::reduce_scatter:
      set_equal_parts(call.from, call.to);  // whose contents are undefined afterwards
      return ReduceToOwners(me_, parts_, call.dtype);
    case Kind::reduce_to_owners:
      parts_.assign(call.pieces, size);
      return ReduceToOwners(me_, parts_, call.dtype);
    case Kind::broadcast_from_owners:
      parts_.assign(call.pieces, size);
      return BroadcastFromOwners(me_, parts_);
    case Kind::all_to_all:
      return ChunkedAllToAll(me_, call);
    case Kind::broadcast:
      return BroadcastByTrees(me_, call);
  }
  return std::nullopt;
}

const CollectiveAlgorithm& Collectives::extent() const {
  return std::visit([](const auto& algorithm) -> const CollectiveAlgorithm& { return algorithm; },
                    *algorithm_);
}

/// Chunk c is that of flight c modulo their number, so it begins when the one before it there has passed all
/// rounds. Each flight has a tag, as chunks may overtake each other; the rounds of one flight do not.
void Collectives::start(const CollectiveCall& call) {
  algorithm_ = algorithm_of(call);
  if (!algorithm_) return;
  dtype_ = call.dtype;
  reduction_ = call.reduction;
  chunks_left_ = extent().chunks.number();
  used_ = std::span(flights_).first(
      static_cast<std::size_t>(std::min<std::int64_t>(extent().flights, chunks_left_)));
  for (Flight& flight : used_) {
    if (std::ssize(flight.scratch) < extent().scratch_bytes)
      flight.scratch.resize(static_cast<std::size_t>(extent().scratch_bytes));
    flight.chunk = &flight - flights_.data();
    flight.round = 0;
    flight.messages.clear();
    begin_round(flight);
  }
}

Progress Collectives::advance() {
  if (!algorithm_) return Progress::done;
  const std::int64_t chunks = extent().chunks.number();
  bool has_moved = false;
  for (Flight& flight : used_) {
    while (flight.chunk < chunks && has_arrived(flight)) {
      has_moved = true;
      take_results(flight);
      if (++flight.round == extent().rounds) {
        --chunks_left_;
        flight.round = 0;
        flight.chunk += std::ssize(used_);
        if (flight.chunk >= chunks) break;
      }
      begin_round(flight);
    }
  }
  if (chunks_left_ > 0) return has_moved ? Progress::some : Progress::none;
  algorithm_.reset();
  parts_.unpack();
  return Progress::done;
}

void Collectives::begin_round(Flight& flight) {
  flight.work.clear();
  std::visit(
      [&](const auto& algorithm) {
        algorithm.fill(flight.work, flight.chunk, flight.round, flight.scratch.data());
      },
      *algorithm_);
  start_messages(flight);
}

void Collectives::start_messages(Flight& flight) {
  const int tag = static_cast<int>(&flight - flights_.data());
  const auto each_message = [&](int peer, std::int64_t bytes, auto body) {
    const std::int64_t most = most_bytes_to(peer);
    for (std::int64_t first = 0; first < bytes; first += most)
      flight.messages.push_back(body(first, std::min(most, bytes - first)));
  };
  for (const auto& [data, bytes, from] : flight.work.receives)
    each_message(from, bytes, [&, to = data, peer = from](std::int64_t first, std::int64_t length) {
      return wire_.irecv(static_cast<std::byte*>(to) + first, length, peer, tag);
    });
  for (const auto& [data, bytes, to] : flight.work.sends) {
    each_message(to, bytes, [&, from = data, peer = to](std::int64_t first, std::int64_t length) {
      return wire_.isend(static_cast<const std::byte*>(from) + first, length, peer, tag);
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
