#pragma once
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "libalpa/device/device.h"
#include "libalpa/kernels/kernel.h"
#include "libalpa/kernels/make_kernel.h"
#include "libalpa/ops/catalog.h"

namespace alpa {

/// Something that runs kernels.
struct Backend {
  std::string name;
  DeviceKind kind;
  std::function<std::unique_ptr<Device>()> make;
};

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

/// What this program tests kernels on. A GPU is among them only where one is visible.
std::vector<Backend> kernel_backends();

/// Those backends with each of the operators that they have kernels for.
inline std::vector<std::tuple<Backend, std::string>> backends_with(const std::vector<std::string>& ops) {
  std::vector<std::tuple<Backend, std::string>> pairs;
  for (const Backend& backend : kernel_backends())
    for (const std::string& op : ops)
      if (has_kernel(backend.kind, op_catalog().find(op))) pairs.emplace_back(backend, op);
  return pairs;
}

/// Names a test by such a pair.
inline constexpr auto kBackendAndOp = [](const auto& test) {
  return std::get<0>(test.param).name + "_" + std::get<1>(test.param);
};

}  // namespace alpa
