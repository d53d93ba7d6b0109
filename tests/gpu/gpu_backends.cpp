#include "tests/kernels/backends.h"

namespace alpa {

std::vector<Backend> kernel_backends() {
  return {{"cuda", DeviceKind::cuda, [] { return make_cuda_device(0); }}};
}

}  // namespace alpa
