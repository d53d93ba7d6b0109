#include "libalpa/kernels/kernel.h"

#include "libalpa/kernels/host_loops.h"
#include "libalpa/kernels/kernels_cpu.h"
#include "libalpa/kernels/kernels_cuda.h"

namespace alpa {
namespace {

/// Runs a kernel of the host with the device's threads, the memory of a checked device open meanwhile.
class KernelOnHost final : public Kernel {
 public:
  KernelOnHost(Device& device, const OpDef& op, const KernelShape& shape) : device_(device) {
    const HostThreads threads(device.host_threads());
    kernel_ = make_cpu_kernel(op, shape);
  }

  void run(Stream& stream, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
           bool accumulate, const RunPoint& point) override {
    const HostThreads threads(device_.host_threads());
    const auto access = device_.host_access();
    kernel_->run(stream, operands, results, workspace, accumulate, point);
  }

 private:
  Device& device_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(Device& device, const OpDef& op, const KernelShape& shape) {
  if (device.kind() == DeviceKind::cuda) return make_cuda_kernel(device, op, shape);
  return std::make_unique<KernelOnHost>(device, op, shape);
}

void copy_box(Device& device, Stream& stream, const void* from, const Box& from_box, void* to,
              const Box& to_box, const Shape& extent, DType dtype) {
  if (device.kind() == DeviceKind::cuda) {
    copy_box_cuda(stream, from, from_box, to, to_box, extent, dtype);
    return;
  }
  const HostThreads threads(device.host_threads());
  const auto access = device.host_access();
  copy_box_cpu(from, from_box, to, to_box, extent, dtype);
}

}  // namespace alpa
