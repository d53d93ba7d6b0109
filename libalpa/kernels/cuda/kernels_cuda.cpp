#include "libalpa/kernels/cuda/kernels_cuda.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Kernel> (*factory)(Device&, const KernelShape&);
};

constexpr Entry kFactories[] = {
#define ALPA_CPU_OP(name)
#define ALPA_OP(name) {#name, ops::name##_cuda},
#include "libalpa/ops/ops.def"
#undef ALPA_OP
};

}  // namespace

bool has_cuda_kernel(const OpDef& op) {
  return std::ranges::any_of(kFactories, [&](const Entry& entry) { return entry.name == op.name; });
}

std::unique_ptr<Kernel> make_cuda_kernel(Device& device, const OpDef& op, const KernelShape& shape) {
  for (const Entry& entry : kFactories) {
    if (entry.name != op.name) continue;
    if (std::unique_ptr<Kernel> kernel = entry.factory(device, shape)) return kernel;
    throw Error(ErrorKind::run_time,
                fmt::format("operator '{}' has no CUDA kernel for{}", op.name, types_text(shape)),
                "use a CPU device");
  }
  throw Error(ErrorKind::run_time, fmt::format("operator '{}' has no CUDA kernel yet", op.name),
              "use a CPU device");
}

}  // namespace alpa
