#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa {

bool has_cuda_kernel(const OpDef&) { return false; }

std::unique_ptr<Kernel> make_cuda_kernel(Device&, const OpDef& op, const KernelShape&) {
  throw Error(ErrorKind::run_time,
              fmt::format("operator '{}' has no CUDA kernel: this build has no CUDA backend", op.name),
              "build with the cuda preset, or use a CPU device");
}

std::unique_ptr<Kernel> make_box_copy_cuda(const Box&, const Box&, const Shape&, DType, DType) {
  throw Error(ErrorKind::run_time, "cannot copy on a CUDA device: this build has no CUDA backend",
              "build with the cuda preset, or use a CPU device");
}

}  // namespace alpa
