#include "libalpa/comm/staged_communicator.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

namespace alpa {
namespace {

// Calls that can be cut anywhere go through staging of this size at most.
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

/// Staging buffers of a device, reused.
class StagingPool {
 public:
  struct GiveBack {
    StagingPool* pool;
    void operator()(DeviceMemory* memory) const { pool->free_.emplace_back(memory); }
  };
  using Lease = std::unique_ptr<DeviceMemory, GiveBack>;

  explicit StagingPool(Device& device) : device_(device) {}

  /// At least `bytes` bytes, back in the pool when the lease ends.
  Lease take(std::int64_t bytes) {
    const auto fits = [&](const auto& memory) { return memory->bytes() >= bytes; };
    const auto found = std::find_if(free_.begin(), free_.end(), fits);
    std::unique_ptr<DeviceMemory> memory;
    if (found == free_.end()) {
      // Powers of two, so that few sizes serve all calls.
      memory = device_.allocate_staging(
          static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes))));
    } else {
      memory = std::move(*found);
      free_.erase(found);
    }
    return Lease(memory.release(), {this});
  }

 private:
  Device& device_;
  std::vector<std::unique_ptr<DeviceMemory>> free_;
};

using Staging = StagingPool::Lease;

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(Device& device, std::unique_ptr<Communicator> host)
      : device_(device), host_(std::move(host)), pool_(device) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  void start(Stream& stream, const CollectiveCall& call) override {
    assert(call.server_ranks == 0);
    using Kind = CollectiveCall::Kind;
    const std::int64_t all = size() * call.bytes, element = dtype_bytes(call.dtype);
    switch (call.kind) {
      case Kind::all_reduce:
        return in_pieces(stream, call.to, call.bytes, [&](void* staging, std::int64_t bytes) {
          host_->all_reduce(stream, staging, bytes / element, call.dtype, call.reduction);
        });
      case Kind::broadcast:
        return in_pieces(stream, call.to, call.bytes, [&](void* staging, std::int64_t bytes) {
          host_->broadcast(stream, staging, bytes, call.root);
        });
      case Kind::all_gather:
        return between_staging(stream, call, call.bytes, all, [&](void* from, void* to) {
          host_->all_gather(stream, from, to, call.bytes);
        });
      case Kind::reduce_scatter:
        return between_staging(stream, call, all, call.bytes, [&](void* from, void* to) {
          host_->reduce_scatter(stream, from, to, call.bytes / element, call.dtype, call.reduction);
        });
      case Kind::all_to_all:
        return between_staging(stream, call, all, all, [&](void* from, void* to) {
          host_->all_to_all(stream, from, to, call.bytes);
        });
      case Kind::reduce_to_owners:
      case Kind::broadcast_from_owners:
        return with_owners(stream, call);
    }
  }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    Staging staging = staged(stream, data, bytes);
    const std::int64_t message = host_->send(stream, staging->data(), bytes, to);
    sending_.emplace_back(message, std::move(staging));
    return message;
  }

  bool has_left(Stream& stream, std::int64_t message) override {
    if (!host_->has_left(stream, message)) return false;
    std::erase_if(sending_, [&](const auto& sending) { return sending.first == message; });
    return true;
  }

  void wait_sends(Stream& stream) override {
    host_->wait_sends(stream);
    sending_.clear();
  }
  void move_messages() override { host_->move_messages(); }

  std::int64_t start_receive(Stream& stream, void* data, std::int64_t bytes, int from) override {
    const Staging staging = pool_.take(bytes);
    host_->receive(stream, staging->data(), bytes, from);
    unstage(stream, data, *staging, bytes);
    return 0;
  }

  void rest(std::string_view during) override { host_->rest(during); }

  void barrier() override { host_->barrier(); }
  void set_nodes(std::vector<int> node_of_rank) override { host_->set_nodes(std::move(node_of_rank)); }
  void set_sends_ahead(bool ahead) override { host_->set_sends_ahead(ahead); }
  SentBytes sent() const override { return host_->sent(); }

  std::unique_ptr<Communicator> split(int color) override {
    std::unique_ptr<Communicator> part = host_->split(color);
    return part ? make_staged_communicator(device_, std::move(part)) : nullptr;
  }

 private:
  Staging staged(Stream& stream, const void* device, std::int64_t bytes) {
    Staging staging = pool_.take(bytes);
    stream.copy_to_host(staging->data(), device, bytes);
    stream.synchronize();
    return staging;
  }

  static void unstage(Stream& stream, void* device, const DeviceMemory& staging, std::int64_t bytes) {
    stream.copy_to_device(device, staging.data(), bytes);
    stream.synchronize();  // the staging is reused
  }

  template <class Call>
  void in_pieces(Stream& stream, void* device, std::int64_t bytes, Call call) {
    for (std::int64_t first = 0; first < bytes; first += kPieceBytes) {
      const std::int64_t length = std::min(kPieceBytes, bytes - first);
      void* piece = static_cast<std::byte*>(device) + first;
      const Staging staging = staged(stream, piece, length);
      call(staging->data(), length);
      unstage(stream, piece, *staging, length);
    }
  }

  template <class Body>
  void between_staging(Stream& stream, const CollectiveCall& call, std::int64_t from_bytes,
                       std::int64_t to_bytes, Body body) {
    const Staging from = staged(stream, call.from, from_bytes), to = pool_.take(to_bytes);
    body(from->data(), to->data());
    unstage(stream, call.to, *to, to_bytes);
  }

  void with_owners(Stream& stream, const CollectiveCall& call) {
    const bool reduces = call.kind == CollectiveCall::Kind::reduce_to_owners;
    // What this rank owns goes one way, the other the rest.
    const auto is_own = [&](const OwnedPiece& piece) { return piece.owner == rank(); };
    const Staging staging = pool_.take(total_bytes(call.pieces));
    auto* next = static_cast<std::byte*>(staging->data());
    staged_pieces_.clear();
    for (const OwnedPiece& piece : call.pieces) {
      if (reduces || is_own(piece)) stream.copy_to_host(next, piece.data, piece.bytes);
      staged_pieces_.push_back({next, piece.bytes, piece.owner});
      next += piece.bytes;
    }
    stream.synchronize();
    if (reduces)
      host_->reduce_to_owners(stream, staged_pieces_, call.dtype, call.reduction);
    else
      host_->broadcast_from_owners(stream, staged_pieces_);
    for (std::size_t i = 0; i < call.pieces.size(); ++i)
      if (is_own(call.pieces[i]) == reduces)
        stream.copy_to_device(call.pieces[i].data, staged_pieces_[i].data, call.pieces[i].bytes);
    stream.synchronize();  // the staging is reused
  }

  Device& device_;
  std::unique_ptr<Communicator> host_;
  StagingPool pool_;
  std::vector<OwnedPiece> staged_pieces_;
  std::vector<std::pair<std::int64_t, Staging>> sending_;  ///< by message
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(Device& device, std::unique_ptr<Communicator> host) {
  return std::make_unique<StagedCommunicator>(device, std::move(host));
}

}  // namespace alpa
