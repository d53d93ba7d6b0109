#include "libalpa/kernels/element_types.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"

namespace alpa {

void check_element_types(const Device& device, const Graph& graph) {
  if (device.kind() == DeviceKind::cuda || device.kind() == DeviceKind::emulated) return;
  for (const Value& value : graph.values)
    if (value.type.dtype == DType::f16)
      throw Error(
          ErrorKind::allocation,
          fmt::format("the model computes in f16, which this device does not: {}", device.description()),
          "precision = \"bf16\" in [training], or --device cuda");
}

}  // namespace alpa
