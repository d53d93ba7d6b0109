#include "tests/kernels/backends.h"

namespace alpa {

std::vector<Backend> kernel_backends() {
  return {{"cuda", [] { return make_cuda_device(0); }}};
}

}  // namespace alpa
