#include <cassert>

#include "libalpa/comm/communicator.h"
#include "libalpa/comm/self_messages.h"

namespace alpa {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  void all_reduce(Stream&, void*, std::int64_t, DType, Reduction) override {}

  void all_gather(Stream& stream, const void* part, void* whole, std::int64_t bytes_each) override {
    stream.copy_on_device(whole, part, bytes_each);
  }

  void reduce_scatter(Stream& stream, void* whole, void* part, std::int64_t count_each, DType dtype,
                      Reduction) override {
    stream.copy_on_device(part, whole, count_each * dtype_bytes(dtype));
  }

  void all_to_all(Stream& stream, const void* from, void* to, std::int64_t bytes_each) override {
    stream.copy_on_device(to, from, bytes_each);
  }

  void broadcast(Stream&, void*, std::int64_t, [[maybe_unused]] int root) override { assert(root == 0); }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, [[maybe_unused]] int to) override {
    assert(to == 0);
    return messages_.send(stream, data, bytes);
  }
  void receive(Stream& stream, void* data, std::int64_t bytes, [[maybe_unused]] int from) override {
    assert(from == 0);
    messages_.receive(stream, data, bytes);
  }
  void wait_send(Stream& stream, std::int64_t message) override { messages_.wait_send(stream, message); }
  void wait_sends(Stream& stream) override { messages_.wait_sends(stream); }

  void barrier() override {}

  std::unique_ptr<Communicator> split(int color) override {
    return color < 0 ? nullptr : std::make_unique<SelfCommunicator>();
  }

 private:
  SelfMessages messages_;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() { return std::make_unique<SelfCommunicator>(); }

}  // namespace alpa
