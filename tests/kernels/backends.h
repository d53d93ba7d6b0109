#pragma once
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "libalpa/device/device.h"

namespace alpa {

/// Something that runs kernels.
struct Backend {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
};

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

/// What this program tests kernels on. A GPU is among them only where one is visible.
std::vector<Backend> kernel_backends();

}  // namespace alpa
