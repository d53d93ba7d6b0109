#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <thread>

#include "libalpa/base/error.h"
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

  void all_reduce(Stream& stream, void* values, std::int64_t count, DType dtype,
                  Reduction reduction) override {
    Bytes host = download(stream, values, count * dtype_bytes(dtype));
    collectives_.all_reduce(host.data(), count, dtype, reduction);
    upload(stream, values, host);
  }

  void all_gather(Stream& stream, const void* part, void* whole, std::int64_t bytes_each) override {
    const Bytes mine = download(stream, part, bytes_each);
    Bytes all(static_cast<std::size_t>(size() * bytes_each));
    collectives_.all_gather(mine.data(), all.data(), bytes_each);
    upload(stream, whole, all);
  }

  void reduce_scatter(Stream& stream, void* whole, void* part, std::int64_t count_each, DType dtype,
                      Reduction reduction) override {
    const std::int64_t bytes_each = count_each * dtype_bytes(dtype);
    Bytes all = download(stream, whole, size() * bytes_each);
    Bytes mine(static_cast<std::size_t>(bytes_each));
    collectives_.reduce_scatter(all.data(), mine.data(), count_each, dtype, reduction);
    upload(stream, part, mine);
  }

  void all_to_all(Stream& stream, const void* from, void* to, std::int64_t bytes_each) override {
    const Bytes mine = download(stream, from, size() * bytes_each);
    Bytes theirs(mine.size());
    collectives_.all_to_all(mine.data(), theirs.data(), bytes_each);
    upload(stream, to, theirs);
  }

  void broadcast(Stream& stream, void* data, std::int64_t bytes, int root) override {
    Bytes host = download(stream, data, bytes);
    collectives_.broadcast(host.data(), bytes, root);
    if (rank_ != root) upload(stream, data, host);
  }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    collectives_.count_sent(to, bytes);
    group_->put_message(rank_, to, kThreadMessageTag, download(stream, data, bytes));
    return 0;
  }

  void receive(Stream& stream, void* data, std::int64_t bytes, int from) override {
    const Bytes message = group_->take_message(from, rank_, kThreadMessageTag);
    if (static_cast<std::int64_t>(message.size()) != bytes)
      throw Error(ErrorKind::run_time, fmt::format("rank {} expects {} bytes from rank {}, which sent {}",
                                                   rank_, bytes, from, message.size()));
    upload(stream, data, message);
  }

  void wait_send(Stream&, std::int64_t) override {}  // messages are copies
  void wait_sends(Stream&) override {}

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
  static Bytes download(Stream& stream, const void* device, std::int64_t bytes) {
    Bytes host(static_cast<std::size_t>(bytes));
    stream.copy_to_host(host.data(), device, bytes);
    stream.synchronize();
    return host;
  }

  static void upload(Stream& stream, void* device, const Bytes& host) {
    stream.copy_to_device(device, host.data(), static_cast<std::int64_t>(host.size()));
    stream.synchronize();
  }

  std::shared_ptr<ThreadGroup> group_;
  ThreadWire wire_;
  Collectives collectives_;
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
