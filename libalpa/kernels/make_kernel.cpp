#include "libalpa/kernels/make_kernel.h"

#include <type_traits>
#include <utility>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/row_groups.h"

namespace alpa {
namespace {

/// Runs a kernel of the host with the device's threads, the memory of a checked device open meanwhile.
class KernelOnHost final : public Kernel {
 public:
  KernelOnHost(Device& device, std::unique_ptr<Kernel> kernel)
      : device_(device), kernel_(std::move(kernel)) {}

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

template <class... Arguments>
std::unique_ptr<Kernel> prepared_on_host(Device& device, std::unique_ptr<Kernel> (*make)(Arguments...),
                                         std::type_identity_t<Arguments>... arguments) {
  const HostThreads threads(device.host_threads());
  return std::make_unique<KernelOnHost>(device, make(arguments...));
}

}  // namespace

bool has_kernel(DeviceKind kind, const OpDef& op) { return kind != DeviceKind::cuda || has_cuda_kernel(op); }

std::unique_ptr<Kernel> make_kernel(Device& device, const OpDef& op, const KernelShape& shape) {
  if (const auto rows = vertex_rows_of(shape.attributes))
    return make_row_group_kernel(op, shape, *rows, device.kind(),
                                 [&](const KernelShape& some) { return make_kernel(device, op, some); });
  if (device.kind() == DeviceKind::cuda) return make_cuda_kernel(device, op, shape);
  return prepared_on_host(device, make_cpu_kernel, op, shape);
}

std::unique_ptr<Kernel> make_box_copy(Device& device, const Box& from, const Box& to, const Shape& extent,
                                      DType from_type, DType to_type) {
  if (device.kind() == DeviceKind::cuda) return make_box_copy_cuda(from, to, extent, from_type, to_type);
  return prepared_on_host(device, make_box_copy_cpu, from, to, extent, from_type, to_type);
}

}  // namespace alpa
