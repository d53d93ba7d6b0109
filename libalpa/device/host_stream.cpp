#include "libalpa/device/host_stream.h"

#include <cassert>
#include <cstring>

namespace alpa {
namespace {

class HostEvent final : public Event {
 public:
  void wait_on_host() override {}
};

class HostStream final : public Stream {
 public:
  explicit HostStream(Device& device) : device_(device) {}

  std::unique_ptr<Event> record() override { return std::make_unique<HostEvent>(); }
  void record(Event&) override {}
  void wait(const Event&) override {}
  void synchronize() override {}

  void copy_to_host(void* host, const void* device, std::int64_t bytes) override {
    copy(host, device, bytes);
  }
  void copy_to_device(void* device, const void* host, std::int64_t bytes) override {
    copy(device, host, bytes);
  }
  void copy_on_device(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes); }

  void fill_zero(void* device, std::int64_t bytes) override {
    assert(bytes >= 0);
    const auto access = device_.host_access();
    if (bytes > 0) std::memset(device, 0, static_cast<std::size_t>(bytes));
  }

  void* native() const override { return nullptr; }

 private:
  void copy(void* to, const void* from, std::int64_t bytes) {
    assert(bytes >= 0);
    const auto access = device_.host_access();
    if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  Device& device_;
};

}  // namespace

std::unique_ptr<Stream> make_host_stream(Device& device) { return std::make_unique<HostStream>(device); }

}  // namespace alpa
