#include "libalpa/kernels/cpu/kernels_cpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "libalpa/base/error.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Kernel> (*factory)(const KernelShape&);
};

constexpr Entry kFactories[] = {
#define ALPA_OP(name) {#name, ops::name##_cpu},
#include "libalpa/ops/ops.def"
#undef ALPA_OP
};

bool has_f16(std::span<const TensorType> types) {
  return std::ranges::any_of(types, [](const TensorType& type) { return type.dtype == DType::f16; });
}

}  // namespace

std::unique_ptr<Kernel> make_cpu_kernel(const OpDef& op, const KernelShape& shape) {
  for (const Entry& entry : kFactories) {
    if (entry.name != op.name) continue;
    if (!has_f16(shape.operands) && !has_f16(shape.results))
      if (std::unique_ptr<Kernel> kernel = entry.factory(shape)) return kernel;
    throw Error(ErrorKind::run_time,
                fmt::format("operator '{}' has no CPU kernel for{}", op.name, types_text(shape)));
  }
  throw Error(ErrorKind::run_time, fmt::format("operator '{}' is not in the list of CPU kernels", op.name));
}

}  // namespace alpa
