#include "libalpa/comm/staged_communicator.h"

#include <algorithm>
#include <bit>
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

  void all_reduce(Stream& stream, void* values, std::int64_t count, DType dtype,
                  Reduction reduction) override {
    const std::int64_t element = dtype_bytes(dtype);
    in_pieces(stream, values, count * element, [&](void* staging, std::int64_t bytes) {
      host_->all_reduce(stream, staging, bytes / element, dtype, reduction);
    });
  }

  void all_gather(Stream& stream, const void* part, void* whole, std::int64_t bytes_each) override {
    const Staging part_staging = staged(stream, part, bytes_each);
    const Staging whole_staging = pool_.take(size() * bytes_each);
    host_->all_gather(stream, part_staging->data(), whole_staging->data(), bytes_each);
    unstage(stream, whole, *whole_staging, size() * bytes_each);
  }

  void reduce_scatter(Stream& stream, void* whole, void* part, std::int64_t count_each, DType dtype,
                      Reduction reduction) override {
    const std::int64_t bytes_each = count_each * dtype_bytes(dtype);
    const Staging whole_staging = staged(stream, whole, size() * bytes_each);
    const Staging part_staging = pool_.take(bytes_each);
    host_->reduce_scatter(stream, whole_staging->data(), part_staging->data(), count_each, dtype, reduction);
    unstage(stream, part, *part_staging, bytes_each);
  }

  void all_to_all(Stream& stream, const void* from, void* to, std::int64_t bytes_each) override {
    const Staging from_staging = staged(stream, from, size() * bytes_each);
    const Staging to_staging = pool_.take(size() * bytes_each);
    host_->all_to_all(stream, from_staging->data(), to_staging->data(), bytes_each);
    unstage(stream, to, *to_staging, size() * bytes_each);
  }

  void broadcast(Stream& stream, void* data, std::int64_t bytes, int root) override {
    in_pieces(stream, data, bytes,
              [&](void* staging, std::int64_t length) { host_->broadcast(stream, staging, length, root); });
  }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    Staging staging = staged(stream, data, bytes);
    const std::int64_t message = host_->send(stream, staging->data(), bytes, to);
    sending_.emplace_back(message, std::move(staging));
    return message;
  }

  void receive(Stream& stream, void* data, std::int64_t bytes, int from) override {
    const Staging staging = pool_.take(bytes);
    host_->receive(stream, staging->data(), bytes, from);
    unstage(stream, data, *staging, bytes);
  }

  void wait_send(Stream& stream, std::int64_t message) override {
    host_->wait_send(stream, message);
    std::erase_if(sending_, [&](const auto& sending) { return sending.first == message; });
  }

  void wait_sends(Stream& stream) override {
    host_->wait_sends(stream);
    sending_.clear();
  }
  void move_sends() override { host_->move_sends(); }

  void barrier() override { host_->barrier(); }
  void set_nodes(std::vector<int> node_of_rank) override { host_->set_nodes(std::move(node_of_rank)); }
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

  Device& device_;
  std::unique_ptr<Communicator> host_;
  StagingPool pool_;
  std::vector<std::pair<std::int64_t, Staging>> sending_;  ///< by message
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(Device& device, std::unique_ptr<Communicator> host) {
  return std::make_unique<StagedCommunicator>(device, std::move(host));
}

}  // namespace alpa
