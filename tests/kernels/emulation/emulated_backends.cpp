#include "tests/kernels/backends.h"
#include "tests/kernels/emulation/emulated_device.h"

namespace alpa {

std::vector<Backend> kernel_backends() {
  return {{"emulated_cuda", DeviceKind::cuda,
           [] { return emulation::make_device(emulation::Order::ascending); }}};
}

}  // namespace alpa
