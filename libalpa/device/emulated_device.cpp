#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "libalpa/device/device.h"
#include "libalpa/device/host_machine.h"
#include "libalpa/device/host_memory.h"
#include "libalpa/device/host_stream.h"

namespace alpa {
namespace {

/// Pages of zeros until they are written, of which a machine may promise more than it has.
class PromisedMemory final : public DeviceMemory {
 public:
  explicit PromisedMemory(std::int64_t bytes) : bytes_(bytes) {
    data_ =
        mmap(nullptr, mapped(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw_out_of_memory("the emulated device", bytes, available_host_bytes());
  }
  ~PromisedMemory() override { munmap(data_, mapped()); }
  PromisedMemory(const PromisedMemory&) = delete;
  PromisedMemory& operator=(const PromisedMemory&) = delete;

  void* data() const override { return data_; }
  std::int64_t bytes() const override { return bytes_; }

 private:
  std::size_t mapped() const { return static_cast<std::size_t>(std::max<std::int64_t>(bytes_, 1)); }

  std::int64_t bytes_;
  void* data_;
};

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice(std::string of, std::int64_t memory_bytes)
      : of_(std::move(of)), memory_bytes_(memory_bytes) {}

  DeviceKind kind() const override { return DeviceKind::emulated; }
  int host_threads() const override { return 1; }
  std::string description() const override { return "emulated " + of_; }

  std::unique_ptr<DeviceMemory> allocate(std::int64_t bytes) override {
    if (bytes > memory_bytes_) throw_out_of_memory("the emulated device", bytes, memory_bytes_);
    return std::make_unique<PromisedMemory>(bytes);
  }
  std::unique_ptr<DeviceMemory> allocate_staging(std::int64_t bytes) override {
    return std::make_unique<PromisedMemory>(bytes);
  }
  std::unique_ptr<Stream> make_stream() override { return make_host_stream(*this); }
  std::unique_ptr<HostAccess> host_access() override { return nullptr; }
  std::int64_t memory_bytes() const override { return memory_bytes_; }

 private:
  std::string of_;
  std::int64_t memory_bytes_;
};

}  // namespace

std::unique_ptr<Device> make_emulated_device(const std::string& of, std::int64_t memory_bytes) {
  return std::make_unique<EmulatedDevice>(of, memory_bytes);
}

}  // namespace alpa
