#include <fmt/core.h>

#include <cassert>

#include "libalpa/device/device.h"
#include "libalpa/device/host_machine.h"
#include "libalpa/device/host_memory.h"
#include "libalpa/device/host_stream.h"

namespace alpa {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) { assert(threads > 0); }

  DeviceKind kind() const override { return DeviceKind::cpu; }
  int host_threads() const override { return threads_; }

  std::string description() const override {
    return fmt::format("CPU, {} thread{} ({})", threads_, threads_ == 1 ? "" : "s", processor_name());
  }

  std::unique_ptr<DeviceMemory> allocate(std::int64_t bytes) override {
    return allocate_host_memory(bytes, "the CPU device");
  }
  std::unique_ptr<DeviceMemory> allocate_staging(std::int64_t bytes) override {
    return allocate_host_memory(bytes, "the host");
  }
  std::unique_ptr<Stream> make_stream() override { return make_host_stream(*this); }
  std::unique_ptr<HostAccess> host_access() override { return nullptr; }
  std::int64_t memory_bytes() const override { return available_host_bytes(); }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) { return std::make_unique<CpuDevice>(threads); }

}  // namespace alpa
