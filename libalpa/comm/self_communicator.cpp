#include <cassert>

#include "libalpa/comm/communicator.h"
#include "libalpa/comm/self_messages.h"

namespace alpa {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  void start(Stream& stream, const CollectiveCall& call) override {
    if (call.from) stream.copy_on_device(call.to, call.from, call.bytes);
  }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, [[maybe_unused]] int to) override {
    assert(to == 0);
    return messages_.send(stream, data, bytes);
  }
  bool has_left(Stream& stream, std::int64_t message) override {
    messages_.wait_send(stream, message);
    return true;
  }
  void wait_sends(Stream& stream) override { messages_.wait_sends(stream); }

  std::int64_t start_receive(Stream& stream, void* data, std::int64_t bytes,
                             [[maybe_unused]] int from) override {
    assert(from == 0);
    messages_.receive(stream, data, bytes);
    return 0;
  }

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
