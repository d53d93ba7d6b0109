#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/device/device.h"

namespace alpa {

enum class Reduction { sum, max };

using RankPair = std::pair<int, int>;  ///< sender, receiver

/// Bytes that a rank has sent, to ranks of its node and to others.
struct SentBytes {
  std::int64_t within_node = 0, between_nodes = 0;
  bool operator==(const SentBytes&) const = default;
};

/// A stretch of memory that each rank of a group has and one of them owns.
struct OwnedPiece {
  void* data = nullptr;
  std::int64_t bytes = 0;
  int owner = 0;  ///< a rank of the group
};
std::int64_t total_bytes(std::span<const OwnedPiece>);

/// What one rank gives to a collective and gets from it.
struct CollectiveCall {
  enum class Kind {
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    broadcast,
    reduce_to_owners,
    broadcast_from_owners
  };
  Kind kind = Kind::all_reduce;
  const void* from = nullptr;
  void* to = nullptr;        ///< an all-reduce and a broadcast work here, in place
  std::int64_t bytes = 0;    ///< of a rank's part; of an all-reduce and a broadcast: all
  DType dtype = DType::f32;  ///< of reductions
  Reduction reduction = Reduction::sum;
  int root = 0;
  /// Of an all-reduce: so many ranks, whole nodes and the last of the group, have nothing to add and get
  /// nothing (`to` is null), and help the others, of two nodes at least, to add up
  /// (base/collective_traffic.h, sum_shares). Not of GPUs' communicators.
  int server_ranks = 0;
  /// Of the two with owners, which work on these alone, in place; same lengths and owners on every rank.
  /// They outlive the call.
  std::span<const OwnedPiece> pieces = {};
};

/// How far work is that somebody has to look at for it to go on.
enum class Progress {
  none,  ///< since it was last looked at
  some,
  done,
};

/// A group of ranks that work on one tensor together.
///
/// Calls are collective: every rank of the group makes the same calls in the same order. Buffers live on
/// the group's device, and work is ordered on the given stream. Where the host moves the bytes, what is
/// started goes on while advance(), has_arrived() or has_left() is called, and is ordered with the stream by
/// that alone; elsewhere all of these are true at once, and what was queued is done in the stream's order.
/// Calls that do not start something return when it is done, or queued.
///
/// Reductions have a fixed order: same ranks, nodes and values, same bits, equal on every rank.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  ///< in [0, size())
  virtual int size() const = 0;

  /// Starts a collective. The one before it is done.
  virtual void start(Stream&, const CollectiveCall&) = 0;
  virtual Progress advance(Stream&) { return Progress::done; }

  /// Replaces `count` elements on every rank by their reduction over ranks. f32, bf16 and f16 (whose
  /// sums are accumulated in f32 where the backend lets us choose), i32. `server_ranks`: of CollectiveCall.
  void all_reduce(Stream&, void* values, std::int64_t count, DType, Reduction, int server_ranks = 0);

  /// `whole` (size() * bytes_each) becomes the ranks' `part`s in rank order.
  void all_gather(Stream&, const void* part, void* whole, std::int64_t bytes_each);

  /// `part` (count_each elements) becomes this rank's piece of the reduction of the ranks' `whole`s
  /// (size() * count_each elements). The contents of `whole` are undefined afterwards.
  void reduce_scatter(Stream&, void* whole, void* part, std::int64_t count_each, DType, Reduction);

  /// Block i of `from` goes to rank i; block j of `to` comes from rank j. Blocks are bytes_each long.
  void all_to_all(Stream&, const void* from, void* to, std::int64_t bytes_each);

  void broadcast(Stream&, void* data, std::int64_t bytes, int root);

  /// Each piece, of whole elements, becomes at its owner its reduction over ranks; elsewhere its contents are
  /// undefined afterwards.
  void reduce_to_owners(Stream&, std::span<const OwnedPiece>, DType, Reduction);

  /// Each piece becomes everywhere what its owner has.
  void broadcast_from_owners(Stream&, std::span<const OwnedPiece>);

  /// Announces which ranks send which others messages. Libraries that need a connection for each pair make it
  /// here, and refuse other messages. Groups split from a communicator share its connections, which are told
  /// to it alone; a duplicate starts without. Every rank gives the same pairs, while no call is under way;
  /// further calls add to them.
  virtual void connect([[maybe_unused]] std::span<const RankPair> pairs) {}

  /// Starts a message. Messages between two ranks are matched in the order sent. It may leave before the
  /// receiver has started its receive whatever the size (no rendezvous deadlock): the backend keeps `data` in
  /// use until the message has left; the caller must not overwrite it before. Returns the message's number.
  /// The pair has been announced (connect()).
  virtual std::int64_t send(Stream&, const void* data, std::int64_t bytes, int to) = 0;
  /// Whether the message of that number has left; later work of the stream starts after that.
  virtual bool has_left(Stream&, std::int64_t message) = 0;
  void wait_send(Stream&, std::int64_t message);
  virtual void wait_sends(Stream&) = 0;  ///< for all messages
  /// Moves messages on that have not left or arrived yet, where that takes this thread: a message to another
  /// node goes on only while its sender and its receiver look at it. Called by who computes meanwhile, as
  /// often as it can be; never waits.
  virtual void move_messages() {}

  /// Starts to receive a message of another rank, and returns its number.
  virtual std::int64_t start_receive(Stream&, void* data, std::int64_t bytes, int from) = 0;
  virtual bool has_arrived(Stream&, [[maybe_unused]] std::int64_t message) { return true; }
  /// Whether a receive that is started holds nothing up: neither the caller, nor what the stream is given
  /// after it, messages to other ranks among them.
  virtual bool receives_beside_others() const { return false; }
  void receive(Stream&, void* data, std::int64_t bytes, int from);

  /// For when nothing has moved: gives the core away for a moment. Throws Error(peer) when one that is waited
  /// for cannot come any more, or has been waited for too long. `during`: what the wait is for, for messages.
  virtual void rest([[maybe_unused]] std::string_view during = {}) {}
  /// Likewise, for who has given the core away.
  virtual void look([[maybe_unused]] std::string_view during = {}) {}
  /// After a failure: what is under way is given up, and no more than that is done with this communicator.
  virtual void cancel() {}

  virtual void barrier() = 0;  ///< blocks the host until every rank has called it

  /// A communicator over the ranks whose `color` equals this rank's, in rank order. Collective over this
  /// group; a rank with color < 0 gets nullptr.
  virtual std::unique_ptr<Communicator> split(int color) = 0;

  /// Says which ranks are on one node: rank r is on node_of_rank[r]. It decides the order of reductions and
  /// the way of messages, so it is that of the plan, wherever ranks run; without it each rank is a node.
  /// Groups split from this one have it from here. Every rank calls it alike, before the first split and
  /// between other calls. Libraries that find out for themselves ignore it.
  virtual void set_nodes([[maybe_unused]] std::vector<int> node_of_rank) {}

  /// Whether long messages between nodes leave before their receivers answer, as is best beside computations
  /// (Wire::kMostBytesBetweenNodes). At first they may leave when they are received: programs without overlap
  /// wait for that, as their costs say. Who calls it when, and who has it, as set_nodes().
  virtual void set_sends_ahead([[maybe_unused]] bool ahead) {}

  /// What this rank has sent in calls of this communicator, by the nodes set; zeros where that is not
  /// counted.
  virtual SentBytes sent() const { return {}; }

  /// A communicator over the same ranks whose messages are not matched with this one's. Collective.
  virtual std::unique_ptr<Communicator> duplicate() { return split(0); }
};

/// Nodes of ranks that stand in order of their nodes, `per_node` on each but perhaps the last: 0, 0, 1, 1, 2.
std::vector<int> consecutive_nodes(int ranks, int per_node);

/// A tensor that leaves for the next rank and the place of the one that arrives in its stead.
struct ShiftBuffer {
  const void* from;
  void* to;
  std::int64_t bytes;
};

/// Every rank's tensors go to the next rank, those of the last one to the first; started, and under way while
/// advance() is called.
class TensorShift {
 public:
  void start(Communicator&, Stream&, std::span<const ShiftBuffer>);
  Progress advance(Communicator&, Stream&);

 private:
  std::vector<std::int64_t> arriving_, leaving_;
  std::size_t arrived_ = 0, left_ = 0;
};
void shift(Communicator&, Stream&, std::span<const ShiftBuffer>);  ///< returns when it is done, or queued

/// One rank: every collective is a copy or nothing.
std::unique_ptr<Communicator> make_self_communicator();

/// Runs `body(rank, communicator)` on `ranks` threads of this process, one per rank, and returns when all are
/// done. The first exception of any rank wakes the others (their pending calls throw Error(peer)) and is
/// rethrown.
void run_on_threads(int ranks, const std::function<void(int, Communicator&)>& body);

}  // namespace alpa
