#include "tests/kernels/backends.h"

namespace alpa {

std::vector<Backend> kernel_backends() {
  std::vector<Backend> backends{
      {"checked_cpu", DeviceKind::checked_cpu, [] { return make_checked_cpu_device(1); }},
      {"two_threads", DeviceKind::cpu, [] { return make_cpu_device(2); }}};
  if (visible_cuda_devices() > 0)
    backends.push_back({"cuda", DeviceKind::cuda, [] { return make_cuda_device(0); }});
  return backends;
}

}  // namespace alpa
