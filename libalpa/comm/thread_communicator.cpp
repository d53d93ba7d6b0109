#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

#include "libalpa/comm/collectives.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/comm/thread_group.h"
#include "libalpa/comm/thread_wire.h"

namespace alpa {
namespace {

constexpr int kThreadMessageTag = -1;  // apart from those of collectives

// Collectives work on copies in host memory, made through the ranks' own streams, so that any device will do.
class ThreadCommunicator final : public Communicator {
 public:
  // The group lives as long as any of its ranks holds a communicator on it.
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank)
      : group_(std::move(group)), wire_(group_, rank), collectives_(wire_), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void start(Stream& stream, const CollectiveCall& call) override {
    using Kind = CollectiveCall::Kind;
    pieces_ = call.pieces;
    if (!pieces_.empty()) return start_on_pieces(stream, call);
    const bool is_in_place = call.kind == Kind::all_reduce || call.kind == Kind::broadcast;
    const std::int64_t all = size() * call.bytes;
    const bool gives_all = call.kind == Kind::reduce_scatter || call.kind == Kind::all_to_all,
               gets_all = call.kind == Kind::all_gather || call.kind == Kind::all_to_all;
    if (!is_in_place) download(stream, call.from, gives_all ? all : call.bytes, given_);
    if (call.to == nullptr)
      got_.clear();  // a server's
    else if (is_in_place)
      download(stream, call.to, call.bytes, got_);
    else
      got_.resize(static_cast<std::size_t>(gets_all ? all : call.bytes));
    result_ = call.to;
    CollectiveCall on_host = call;
    on_host.from = given_.data();
    on_host.to = call.to ? got_.data() : nullptr;
    collectives_.start(on_host);
  }

  Progress advance(Stream& stream) override {
    const Progress progress = collectives_.advance();
    if (progress != Progress::done) return progress;
    if (pieces_.empty()) upload(stream, result_, got_);
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      stream.copy_to_device(pieces_[i].data, on_host_[i].data, pieces_[i].bytes);
    stream.synchronize();
    return progress;
  }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    collectives_.count_sent(to, bytes);
    Bytes message;
    download(stream, data, bytes, message);
    group_->put_message(rank_, to, kThreadMessageTag, std::move(message));
    return 0;
  }
  bool has_left(Stream&, std::int64_t) override { return true; }  // messages are copies
  void wait_sends(Stream&) override {}

  std::int64_t start_receive(Stream&, void* data, std::int64_t bytes, int from) override {
    Bytes host(static_cast<std::size_t>(bytes));
    const int message = wire_.irecv(host.data(), bytes, from, kThreadMessageTag);
    arriving_[message] = {std::move(host), data};
    return message;
  }
  bool receives_beside_others() const override { return true; }
  bool has_arrived(Stream& stream, std::int64_t message) override {
    if (!wire_.test(static_cast<int>(message))) return false;
    const auto arrived = arriving_.extract(message);
    upload(stream, arrived.mapped().device, arrived.mapped().host);
    return true;
  }

  void rest(std::string_view) override { wire_.rest(); }
  void look(std::string_view) override { wire_.look(); }

  void barrier() override { group_->meet(); }

  void set_nodes(std::vector<int> node_of_rank) override { collectives_.set_nodes(std::move(node_of_rank)); }
  SentBytes sent() const override { return collectives_.sent(); }

  std::unique_ptr<Communicator> split(int color) override {
    Bytes mine(sizeof(int));
    std::memcpy(mine.data(), &color, sizeof(int));
    const std::int64_t round = round_;
    const std::vector<Bytes>& colors = group_->post(rank_, round_++, mine);
    if (color < 0) return nullptr;
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank)
      if (colors[rank] == mine) ranks.push_back(rank);
    const auto position = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    auto part =
        std::make_unique<ThreadCommunicator>(group_->subgroup(round, ranks), static_cast<int>(position));
    part->set_nodes(collectives_.nodes_of(ranks));
    return part;
  }

 private:
  struct Arriving {
    Bytes host;
    void* device = nullptr;
  };

  void start_on_pieces(Stream& stream, CollectiveCall call) {
    got_.resize(static_cast<std::size_t>(total_bytes(pieces_)));
    std::byte* next = got_.data();
    on_host_.clear();
    for (const OwnedPiece& piece : pieces_) {
      stream.copy_to_host(next, piece.data, piece.bytes);
      on_host_.push_back({next, piece.bytes, piece.owner});
      next += piece.bytes;
    }
    stream.synchronize();
    call.pieces = on_host_;
    collectives_.start(call);
  }

  static void download(Stream& stream, const void* device, std::int64_t bytes, Bytes& host) {
    host.resize(static_cast<std::size_t>(bytes));
    stream.copy_to_host(host.data(), device, bytes);
    stream.synchronize();
  }

  static void upload(Stream& stream, void* device, const Bytes& host) {
    stream.copy_to_device(device, host.data(), static_cast<std::int64_t>(host.size()));
    stream.synchronize();
  }

  std::shared_ptr<ThreadGroup> group_;
  ThreadWire wire_;
  Collectives collectives_;
  Bytes given_, got_;                          ///< of the collective under way
  void* result_ = nullptr;                     ///< where it goes
  std::span<const OwnedPiece> pieces_;         ///< of a collective with owners
  std::vector<OwnedPiece> on_host_;            ///< those in got_
  std::map<std::int64_t, Arriving> arriving_;  ///< by message
  int rank_;
  std::int64_t round_ = 0;  ///< of splits; equal on all ranks, which make the same calls
};

}  // namespace

void run_on_threads(int ranks, const std::function<void(int, Communicator&)>& body) {
  assert(ranks > 0);
  ThreadWorld world(ranks);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  const auto everyone = std::make_shared<ThreadGroup>(world, members);
  const auto run = [&](int rank) {
    try {
      ThreadCommunicator communicator(everyone, rank);
      body(rank, communicator);
      world.finish(rank);
    } catch (...) {
      world.fail(rank, std::current_exception());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (const int rank : members) {
      try {
        threads.emplace_back(run, rank);
      } catch (
          const std::system_error&) {  // no thread to be had: the ranks that run must not wait for this one
        world.fail(rank, std::current_exception());
        break;
      }
    }
  }
  world.rethrow_first_failure();
}

}  // namespace alpa
