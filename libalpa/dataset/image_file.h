#pragma once
// Internal to this module.
#include <cstdint>
#include <filesystem>
#include <vector>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// The most that height and width may be, as in a JPEG: what decodes and scales counts bytes of a row in an
/// int.
inline constexpr std::int64_t most_image_extent = 65'535;

/// Pixels of 8 bits, row by row, channels last: grey, or red, green and blue.
struct Image {
  Shape shape;  ///< height, width, 1 or 3
  std::vector<unsigned char> pixels;
};

/// What a PNG, JPEG or binary PGM or PPM file shows: grey where it knows no colours. Levels of 16 bits are
/// rounded to 8, transparent pixels lie on black, palettes are resolved; the rotation that a camera notes in
/// a JPEG is not looked at. Throws Error(input) that names the file, for damaged files too.
Image read_image(const std::filesystem::path& path);

/// The image as `shape` (height, width, 1 or 3): scaled, in its proportions, until it just covers it, with a
/// triangle filter as wide as the scale; what juts out is cut off alike on both sides. Grey becomes colour by
/// three equal channels, colour becomes grey by ITU-R BT.601.
Image fitted(Image image, const Shape& shape);

}  // namespace alpa
