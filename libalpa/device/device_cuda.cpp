#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <string>

#include "libalpa/base/error.h"
#include "libalpa/device/cuda_check.h"
#include "libalpa/device/device.h"
#include "libalpa/device/host_machine.h"
#include "libalpa/device/host_memory.h"

namespace alpa {
namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent(cudaStream_t stream, DeviceWaits& waits) : waits_(waits) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    const cudaError_t result = cudaEventRecord(event_, stream);
    if (result != cudaSuccess) (void)cudaEventDestroy(event_);
    check_cuda(result, "cudaEventRecord");
  }
  ~CudaEvent() override { (void)cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void wait_on_host() override {
    const DeviceWaits::Call call(waits_, "cudaEventSynchronize");
    check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize");
  }
  cudaEvent_t native() const { return event_; }

 private:
  DeviceWaits& waits_;
  cudaEvent_t event_ = nullptr;
};

/// Does not order itself with CUDA's default stream.
class CudaStream final : public Stream {
 public:
  CudaStream(int device, DeviceWaits& waits) : device_(device), waits_(waits) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~CudaStream() override { (void)cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  std::unique_ptr<Event> record() override { return std::make_unique<CudaEvent>(current(), waits_); }
  void record(Event& event) override {
    check_cuda(cudaEventRecord(static_cast<CudaEvent&>(event).native(), current()), "cudaEventRecord");
  }
  void wait(const Event& event) override {
    check_cuda(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).native(), 0),
               "cudaStreamWaitEvent");
  }
  void synchronize() override {
    const DeviceWaits::Call call(waits_, "cudaStreamSynchronize");
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  void copy_to_host(void* host, const void* device, std::int64_t bytes) override {
    copy(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  void copy_to_device(void* device, const void* host, std::int64_t bytes) override {
    copy(device, host, bytes, cudaMemcpyHostToDevice);
  }
  void copy_on_device(void* to, const void* from, std::int64_t bytes) override {
    if (to != from) copy(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  void fill_zero(void* device, std::int64_t bytes) override {
    assert(bytes >= 0);
    if (bytes > 0)
      check_cuda(cudaMemsetAsync(device, 0, static_cast<std::size_t>(bytes), current()), "cudaMemsetAsync");
  }

  // Whoever asks is about to call CUDA or NCCL from this thread, which must know the device then.
  void* native() const override { return current(); }

 private:
  cudaStream_t current() const {
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    return stream_;
  }

  void copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind) {
    assert(bytes >= 0);
    if (bytes == 0) return;
    // Waits for what is queued where the host's memory is not pinned.
    const DeviceWaits::Call call(waits_, "cudaMemcpyAsync");
    check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, current()),
               "cudaMemcpyAsync");
  }

  int device_;
  DeviceWaits& waits_;
  cudaStream_t stream_ = nullptr;
};

/// Memory that CUDA gave and takes back with `release`.
class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(void* data, std::int64_t bytes, cudaError_t (*release)(void*), DeviceWaits& waits)
      : data_(data), bytes_(bytes), release_(release), waits_(waits) {}
  ~CudaMemory() override {
    const DeviceWaits::Call call(waits_, "cudaFree");  // waits for all that is queued on the device
    (void)release_(data_);
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  void* data() const override { return data_; }
  std::int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  std::int64_t bytes_;
  cudaError_t (*release_)(void*);
  DeviceWaits& waits_;
};

/// "GPU-8a56a4bc-e184-a047-2620-be19fdf913d5", as nvidia-smi writes it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    make_current();
    cudaDeviceProp properties;
    check_cuda(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    description_ = fmt::format("{} ({})", properties.name, uuid_text(properties.uuid));
  }

  DeviceKind kind() const override { return DeviceKind::cuda; }
  int host_threads() const override { return 1; }
  std::string description() const override { return description_; }

  std::unique_ptr<DeviceMemory> allocate(std::int64_t bytes) override {
    make_current();
    const DeviceWaits::Call call(waits(), "cudaMalloc");
    void* data = nullptr;
    const cudaError_t result = cudaMalloc(&data, at_least_one(bytes));
    if (result == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      throw_out_of_memory(description_, bytes, memory_bytes());
    }
    check_cuda(result, "cudaMalloc");
    return std::make_unique<CudaMemory>(data, bytes, cudaFree, waits());
  }

  std::unique_ptr<DeviceMemory> allocate_staging(std::int64_t bytes) override {
    make_current();
    void* data = nullptr;
    const cudaError_t result = cudaMallocHost(&data, at_least_one(bytes));
    if (result == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      throw_out_of_memory("the host, pinned for " + description_, bytes, available_host_bytes());
    }
    check_cuda(result, "cudaMallocHost");
    return std::make_unique<CudaMemory>(data, bytes, cudaFreeHost, waits());
  }

  std::unique_ptr<Stream> make_stream() override {
    make_current();
    return std::make_unique<CudaStream>(index_, waits());
  }

  std::unique_ptr<HostAccess> host_access() override { return nullptr; }

  std::int64_t memory_bytes() const override {
    make_current();
    std::size_t free_bytes = 0, all_bytes = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
    return static_cast<std::int64_t>(free_bytes);
  }

 private:
  // CUDA remembers the device per thread, and a rank may call from several.
  void make_current() const { check_cuda(cudaSetDevice(index_), "cudaSetDevice"); }

  static std::size_t at_least_one(std::int64_t bytes) {
    assert(bytes >= 0);
    return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  }

  int index_;
  std::string description_;
};

/// "" where there is a device of that index.
std::string why_no_device(int index) {
  int count = 0, driver = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess) return index >= 0 && index < count ? "" : fmt::format("{} visible", count);
  (void)cudaGetLastError();
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) return "this machine has no NVIDIA driver";
  return cudaGetErrorString(result);
}

}  // namespace

void check_cuda(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  (void)cudaGetLastError();  // else the next call reports this failure again
  throw Error(ErrorKind::run_time,
              fmt::format("{} failed: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result)));
}

std::unique_ptr<Device> make_cuda_device(int visible_index) {
  const std::string reason = why_no_device(visible_index);
  if (!reason.empty())
    throw Error(ErrorKind::allocation, fmt::format("there is no CUDA device {}: {}", visible_index, reason),
                "srun --gpus-per-task=1, --device cpu, or look at nvidia-smi and CUDA_VISIBLE_DEVICES");
  return std::make_unique<CudaDevice>(visible_index);
}

int visible_cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();
  return 0;
}

}  // namespace alpa
