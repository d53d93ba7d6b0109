#include "libalpa/kernels/kernel.h"

#include "libalpa/kernels/kernels_cpu.h"
#include "libalpa/kernels/kernels_cuda.h"

namespace alpa {
namespace {

/// Opens the memory of a checked device around each run of a kernel.
class BracketedKernel final : public Kernel {
 public:
  BracketedKernel(Device& device, std::unique_ptr<Kernel> kernel)
      : device_(device), kernel_(std::move(kernel)) {}

  void run(Stream& stream, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
           bool accumulate, const RunPoint& point) override {
    const auto access = device_.host_access();
    kernel_->run(stream, operands, results, workspace, accumulate, point);
  }

 private:
  Device& device_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(Device& device, const OpDef& op, const KernelShape& shape) {
  switch (device.kind()) {
    case DeviceKind::cpu:
      return make_cpu_kernel(op, shape);
    case DeviceKind::checked_cpu:
      return std::make_unique<BracketedKernel>(device, make_cpu_kernel(op, shape));
    case DeviceKind::cuda:
      break;
  }
  return make_cuda_kernel(device, op, shape);
}

void copy_box(Device& device, Stream& stream, const void* from, const Box& from_box, void* to,
              const Box& to_box, const Shape& extent, DType dtype) {
  if (device.kind() == DeviceKind::cuda) {
    copy_box_cuda(stream, from, from_box, to, to_box, extent, dtype);
    return;
  }
  const auto access = device.host_access();
  copy_box_cpu(from, from_box, to, to_box, extent, dtype);
}

}  // namespace alpa
