#include "libalpa/ops/window.h"

#include <fmt/core.h>

#include <string>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

std::int64_t setting(const Attributes& attributes, const std::string& name, const char* dimension,
                     std::int64_t default_value, std::int64_t least) {
  const std::int64_t value = attributes.integer(name + dimension, attributes.integer(name, default_value));
  if (value >= least) return value;
  throw Error(ErrorKind::input, fmt::format("{} is {}, expected {} or more", name, value, least));
}

Window window_of(const Attributes& attributes, const char* dimension, std::int64_t size) {
  return {size, setting(attributes, "stride", dimension, 1, 1),
          setting(attributes, "padding", dimension, 0, 0), setting(attributes, "dilation", dimension, 1, 1)};
}

}  // namespace

std::int64_t Window::places(std::int64_t extent) const {
  const std::int64_t reach = (size - 1) * dilation + 1, room = extent + 2 * padding;
  if (reach <= room) return (room - reach) / stride + 1;
  throw Error(ErrorKind::input,
              fmt::format("a window over {} does not fit into {} with padding {}", reach, extent, padding));
}

std::array<Window, 2> windows_of(const Attributes& attributes, std::int64_t height, std::int64_t width) {
  return {window_of(attributes, "_h", height), window_of(attributes, "_w", width)};
}

std::array<Window, 2> windows_of(const Attributes& attributes) {
  return windows_of(attributes, setting(attributes, "window", "_h", 1, 1),
                    setting(attributes, "window", "_w", 1, 1));
}

}  // namespace alpa
