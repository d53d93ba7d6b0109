#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <thread>

#include "libalpa/base/error.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/comm/reduce.h"
#include "libalpa/comm/thread_group.h"

namespace alpa {
namespace {

// Ranks exchange copies in host memory, made through their own streams, so that any device will do.
class ThreadCommunicator final : public Communicator {
 public:
  // The group lives as long as any of its ranks holds a communicator on it.
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void all_reduce(Stream& stream, void* values, std::int64_t count, DType dtype,
                  Reduction reduction) override {
    const std::vector<Bytes>& all = post(stream, values, count * dtype_bytes(dtype));
    upload(stream, values, reduced(all, 0, count, dtype, reduction));
  }

  void all_gather(Stream& stream, const void* part, void* whole, std::int64_t bytes_each) override {
    const std::vector<Bytes>& all = post(stream, part, bytes_each);
    Bytes gathered;
    for (const Bytes& each : all) gathered.insert(gathered.end(), each.begin(), each.end());
    upload(stream, whole, gathered);
  }

  void reduce_scatter(Stream& stream, void* whole, void* part, std::int64_t count_each, DType dtype,
                      Reduction reduction) override {
    const std::vector<Bytes>& all = post(stream, whole, size() * count_each * dtype_bytes(dtype));
    upload(stream, part, reduced(all, rank_ * count_each, count_each, dtype, reduction));
  }

  void all_to_all(Stream& stream, const void* from, void* to, std::int64_t bytes_each) override {
    const std::vector<Bytes>& all = post(stream, from, size() * bytes_each);
    Bytes received;
    for (const Bytes& each : all)
      received.insert(received.end(), each.begin() + rank_ * bytes_each,
                      each.begin() + (rank_ + 1) * bytes_each);
    upload(stream, to, received);
  }

  void broadcast(Stream& stream, void* data, std::int64_t bytes, int root) override {
    const std::vector<Bytes>& all = post(stream, data, rank_ == root ? bytes : 0);
    if (rank_ != root) upload(stream, data, all[root]);
  }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    group_->put_message(rank_, to, download(stream, data, bytes));
    return 0;
  }

  void receive(Stream& stream, void* data, std::int64_t bytes, int from) override {
    const Bytes message = group_->take_message(from, rank_);
    if (static_cast<std::int64_t>(message.size()) != bytes)
      throw Error(ErrorKind::run_time, fmt::format("rank {} expects {} bytes from rank {}, which sent {}",
                                                   rank_, bytes, from, message.size()));
    upload(stream, data, message);
  }

  void wait_send(Stream&, std::int64_t) override {}  // messages are copies
  void wait_sends(Stream&) override {}

  void barrier() override { group_->meet(); }

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
    return std::make_unique<ThreadCommunicator>(group_->subgroup(round, ranks), static_cast<int>(position));
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

  const std::vector<Bytes>& post(Stream& stream, const void* device, std::int64_t bytes) {
    return group_->post(rank_, round_++, download(stream, device, bytes));
  }

  static Bytes reduced(const std::vector<Bytes>& all, std::int64_t first, std::int64_t count, DType dtype,
                       Reduction reduction) {
    std::vector<const void*> parts;
    for (const Bytes& each : all) parts.push_back(each.data() + first * dtype_bytes(dtype));
    Bytes result(static_cast<std::size_t>(count * dtype_bytes(dtype)));
    reduce_in_order(parts, result.data(), count, dtype, reduction);
    return result;
  }

  std::shared_ptr<ThreadGroup> group_;
  int rank_;
  std::int64_t round_ = 0;  ///< equal on all ranks, which make the same calls
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
