#pragma once
#include <array>
#include <cstdint>

#include "libalpa/graph/attributes.h"

namespace alpa {

/// A window that moves along one dimension of an image.
struct Window {
  std::int64_t size = 1, stride = 1, padding = 0, dilation = 1;

  /// In how many places it stands along `extent` elements, with `padding` more on either side. Throws
  /// Error(input) where it fits nowhere.
  std::int64_t places(std::int64_t extent) const;
};

/// Windows of that height and width as the settings "stride", "padding" and "dilation" say; those that end in
/// "_h" and "_w" are for one of the two. Throws Error(input) where a setting is out of range.
std::array<Window, 2> windows_of(const Attributes&, std::int64_t height, std::int64_t width);

/// The same for windows whose size is the setting "window".
std::array<Window, 2> windows_of(const Attributes&);

}  // namespace alpa
