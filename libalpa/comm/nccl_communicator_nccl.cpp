#include <fmt/core.h>
#include <nccl.h>

#include <cassert>
#include <map>
#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/comm/mpi_session.h"
#include "libalpa/comm/nccl_pairs_nccl.h"
#include "libalpa/comm/self_messages.h"

namespace alpa {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
  }
  return ncclNumTypes;
}

ncclRedOp_t nccl_operation(Reduction reduction) { return reduction == Reduction::sum ? ncclSum : ncclMax; }

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }
std::size_t unsigned_count(std::int64_t count) { return static_cast<std::size_t>(count); }

class NcclCommunicator final : public Communicator {
 public:
  /// `pairs` belongs to this communicator and all split from the same first one; `pair_ranks` are the group's
  /// ranks there.
  NcclCommunicator(Device& device, NcclHandle group, std::shared_ptr<NcclPairs> pairs,
                   std::vector<int> pair_ranks)
      : device_(device),
        group_(std::move(group)),
        pairs_(std::move(pairs)),
        pair_ranks_(std::move(pair_ranks)),
        own_stream_(device.make_stream()),
        own_memory_(device.allocate(static_cast<std::int64_t>(pair_ranks_.size() * sizeof(int)))) {
    check_nccl(ncclCommUserRank(group_.get(), &rank_), "ncclCommUserRank");
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(pair_ranks_.size()); }

  void start(Stream& stream, const CollectiveCall& call) override {
    assert(call.server_ranks == 0);
    using Kind = CollectiveCall::Kind;
    const std::size_t bytes = unsigned_count(call.bytes),
                      count = bytes / unsigned_count(dtype_bytes(call.dtype));
    switch (call.kind) {
      case Kind::all_reduce:
        return call_nccl(device_, "ncclAllReduce", [&] {
          return ncclAllReduce(call.to, call.to, count, nccl_type(call.dtype), nccl_operation(call.reduction),
                               group_.get(), native(stream));
        });
      case Kind::all_gather:
        return call_nccl(device_, "ncclAllGather", [&] {
          return ncclAllGather(call.from, call.to, bytes, ncclInt8, group_.get(), native(stream));
        });
      case Kind::reduce_scatter:
        return call_nccl(device_, "ncclReduceScatter", [&] {
          return ncclReduceScatter(call.from, call.to, count, nccl_type(call.dtype),
                                   nccl_operation(call.reduction), group_.get(), native(stream));
        });
      case Kind::all_to_all:
        return start_all_to_all(stream, call);
      case Kind::broadcast:
        return call_nccl(device_, "ncclBroadcast", [&] {
          return ncclBroadcast(call.to, call.to, bytes, ncclInt8, call.root, group_.get(), native(stream));
        });
      case Kind::reduce_to_owners:
        return for_each_piece(call.pieces, "ncclReduce", [&](void* data, std::size_t length, int owner) {
          return ncclReduce(data, data, length / unsigned_count(dtype_bytes(call.dtype)),
                            nccl_type(call.dtype), nccl_operation(call.reduction), owner, group_.get(),
                            native(stream));
        });
      case Kind::broadcast_from_owners:
        return for_each_piece(call.pieces, "ncclBroadcast", [&](void* data, std::size_t length, int owner) {
          return ncclBroadcast(data, data, length, ncclInt8, owner, group_.get(), native(stream));
        });
    }
  }

  void connect(std::span<const RankPair> pairs) override { pairs_->connect(pairs); }

  /// Messages to this rank itself have negative numbers.
  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    if (to == rank_) return -self_messages_.send(stream, data, bytes);
    if (bytes == 0) return 0;
    NcclPairs::Outgoing& pair = pairs_->to(pair_rank(to));
    pair.stream->wait(*stream.record());
    call_nccl(device_, "ncclSend", [&] {
      return ncclSend(data, unsigned_count(bytes), ncclInt8, 1, pair.channel.get(), native(*pair.stream));
    });
    sent_.emplace(++messages_, pair.stream->record());
    return messages_;
  }

  std::int64_t start_receive(Stream& stream, void* data, std::int64_t bytes, int from) override {
    if (from == rank_) {
      self_messages_.receive(stream, data, bytes);
    } else if (bytes > 0) {
      call_nccl(device_, "ncclRecv", [&] {
        return ncclRecv(data, unsigned_count(bytes), ncclInt8, 0, pairs_->from(pair_rank(from)),
                        native(stream));
      });
    }
    return 0;
  }

  void wait_sends(Stream& stream) override {
    self_messages_.wait_sends(stream);
    for (const auto& [message, sent] : sent_) stream.wait(*sent);
    sent_.clear();
  }

  bool has_left(Stream& stream, std::int64_t message) override {
    if (message < 0) {
      self_messages_.wait_send(stream, -message);
    } else if (const auto found = sent_.find(message); found != sent_.end()) {  // else waited for before
      stream.wait(*found->second);
      sent_.erase(found);
    }
    return true;
  }

  void barrier() override {
    all_reduce(*own_stream_, own_memory_->data(), 1, DType::i32, Reduction::max);
    own_stream_->synchronize();
  }

  std::unique_ptr<Communicator> duplicate() override {
    NcclHandle group = part(0);
    auto pairs = std::make_shared<NcclPairs>(device_, group);
    std::vector<int> ranks(unsigned_count(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return std::make_unique<NcclCommunicator>(device_, std::move(group), std::move(pairs), std::move(ranks));
  }

  std::unique_ptr<Communicator> split(int color) override {
    NcclHandle group = part(color);
    // Who else gave this color, in terms of the pairs' ranks.
    std::vector<int> colors(unsigned_count(size()));
    auto* gathered = static_cast<std::byte*>(own_memory_->data());
    void* mine = gathered + static_cast<std::size_t>(rank_) * sizeof(int);
    own_stream_->copy_to_device(mine, &color, sizeof(int));
    all_gather(*own_stream_, mine, gathered, sizeof(int));
    own_stream_->copy_to_host(colors.data(), gathered, own_memory_->bytes());
    own_stream_->synchronize();
    if (color < 0) return nullptr;
    std::vector<int> members;
    for (std::size_t peer = 0; peer < colors.size(); ++peer)
      if (colors[peer] == color) members.push_back(pair_ranks_[peer]);
    return std::make_unique<NcclCommunicator>(device_, std::move(group), pairs_, std::move(members));
  }

 private:
  /// The ranks of that color; of none where it is negative.
  NcclHandle part(int color) {
    ncclComm_t part = nullptr;
    call_nccl(device_, "ncclCommSplit", [&] {
      return ncclCommSplit(group_.get(), color < 0 ? NCCL_SPLIT_NOCOLOR : color, rank_, &part, nullptr);
    });
    return part ? watched(part, group_.get_deleter()) : NcclHandle(nullptr, group_.get_deleter());
  }

  void start_all_to_all(Stream& stream, const CollectiveCall& call) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int peer = 0; peer < size(); ++peer) {
      const auto* block_to = static_cast<const std::byte*>(call.from) + peer * call.bytes;
      auto* block_from = static_cast<std::byte*>(call.to) + peer * call.bytes;
      const std::size_t bytes = unsigned_count(call.bytes);
      check_nccl(ncclSend(block_to, bytes, ncclInt8, peer, group_.get(), native(stream)), "ncclSend");
      check_nccl(ncclRecv(block_from, bytes, ncclInt8, peer, group_.get(), native(stream)), "ncclRecv");
    }
    call_nccl(device_, "ncclGroupEnd", ncclGroupEnd);
  }

  /// call(data, bytes, owner) of each piece, which NCCL does together.
  template <class Call>
  void for_each_piece(std::span<const OwnedPiece> pieces, const char* name, Call call) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (const OwnedPiece& piece : pieces)
      if (piece.bytes > 0) check_nccl(call(piece.data, unsigned_count(piece.bytes), piece.owner), name);
    call_nccl(device_, "ncclGroupEnd", ncclGroupEnd);
  }

  int pair_rank(int peer) const { return pair_ranks_[peer]; }

  Device& device_;
  NcclHandle group_;
  std::shared_ptr<NcclPairs> pairs_;
  std::vector<int> pair_ranks_;
  int rank_ = 0;
  std::unique_ptr<Stream> own_stream_;        ///< of barrier and split
  std::unique_ptr<DeviceMemory> own_memory_;  ///< of barrier and split: an int for each rank
  std::int64_t messages_ = 0;
  std::map<std::int64_t, std::unique_ptr<Event>> sent_;  ///< message -> when it has left
  SelfMessages self_messages_;
};

/// The id that rank 0 of `bootstrap` draws, known to all its ranks.
ncclUniqueId agree_on_id(Device& device, Communicator& bootstrap) {
  ncclUniqueId id{};
  if (bootstrap.rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  const auto stream = device.make_stream();
  const auto memory = device.allocate(sizeof id);
  stream->copy_to_device(memory->data(), &id, sizeof id);
  bootstrap.broadcast(*stream, memory->data(), sizeof id, 0);
  stream->copy_to_host(&id, memory->data(), sizeof id);
  stream->synchronize();
  return id;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Device& device, Communicator& bootstrap) {
  // Making a stream has made the device current for this thread, which is where NCCL takes it from.
  const ncclUniqueId id = agree_on_id(device, bootstrap);
  bootstrap.barrier();  // names a rank that is late, which NCCL cannot
  ncclComm_t all = nullptr;
  call_nccl(device, "ncclCommInitRank", [&] {
    const ncclResult_t result = ncclCommInitRank(&all, bootstrap.size(), id, bootstrap.rank());
    if (result == ncclInvalidUsage)
      throw Error(ErrorKind::allocation,
                  fmt::format("NCCL refuses these ranks: {}", ncclGetLastError(nullptr)),
                  "a GPU for each rank: srun --gpus-per-task=1");
    return result;
  });
  NcclHandle group = watched(all, EndNccl{std::make_shared<NcclWatch>(), &device.waits()});
  auto pairs = std::make_shared<NcclPairs>(device, group);
  std::vector<int> ranks(static_cast<std::size_t>(bootstrap.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<NcclCommunicator>(device, std::move(group), std::move(pairs), std::move(ranks));
}

}  // namespace alpa
