#include "tests/kernels/emulation/emulated_device.h"

#include "libalpa/base/error.h"
#include "libalpa/device/cuda_check.h"
#include "tests/kernels/emulation/emulated_stream.h"

namespace alpa {
namespace emulation {
namespace {

/// Waits for all that is queued on its device before it goes, as CUDA does.
class EmulatedMemory final : public DeviceMemory {
 public:
  EmulatedMemory(const Device& device, std::unique_ptr<DeviceMemory> of)
      : device_(device), of_(std::move(of)) {}
  ~EmulatedMemory() override { synchronize(device_); }
  EmulatedMemory(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(const EmulatedMemory&) = delete;
  void* data() const override { return of_->data(); }
  std::int64_t bytes() const override { return of_->bytes(); }

 private:
  const Device& device_;
  std::unique_ptr<DeviceMemory> of_;
};

class EmulatedDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::cuda; }
  int host_threads() const override { return 1; }
  std::string description() const override { return "an emulated GPU"; }
  std::unique_ptr<DeviceMemory> allocate(std::int64_t bytes) override {
    return std::make_unique<EmulatedMemory>(*this, host_->allocate(bytes));
  }
  std::unique_ptr<DeviceMemory> allocate_staging(std::int64_t bytes) override {
    return std::make_unique<EmulatedMemory>(*this, host_->allocate_staging(bytes));
  }
  std::unique_ptr<Stream> make_stream() override { return emulation::make_stream(*this); }
  std::unique_ptr<HostAccess> host_access() override { return nullptr; }
  std::int64_t memory_bytes() const override { return free_bytes > 0 ? free_bytes : host_->memory_bytes(); }

 private:
  std::unique_ptr<Device> host_ = make_cpu_device(1);
};

}  // namespace

std::unique_ptr<Device> make_device(Order chosen) {
  order = chosen;
  return std::make_unique<EmulatedDevice>();
}

}  // namespace emulation

void check_cuda(cudaError_t result, const char* call) {
  if (result != cudaSuccess) throw Error(ErrorKind::run_time, call);
}

}  // namespace alpa
