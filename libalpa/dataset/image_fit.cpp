// The single place that parses stb_image_resize.
#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#include <stb/stb_image_resize.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/dataset/image_file.h"

namespace alpa {
namespace {

Image with_channels(Image image, std::int64_t channels) {
  if (image.shape[2] == channels) return image;
  Image result{{image.shape[0], image.shape[1], channels}, {}};
  result.pixels.resize(static_cast<std::size_t>(element_count(result.shape)));
  const auto pixels = static_cast<std::size_t>(image.shape[0] * image.shape[1]);
  for (std::size_t i = 0; i < pixels; ++i) {
    if (channels == 3) {
      std::fill_n(&result.pixels[3 * i], 3, image.pixels[i]);
    } else {
      const unsigned char* from = &image.pixels[3 * i];
      result.pixels[i] =
          static_cast<unsigned char>((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) / 1000);
    }
  }
  return result;
}

}  // namespace

Image fitted(Image image, const Shape& shape) {
  image = with_channels(std::move(image), shape[2]);
  if (image.shape == shape) return image;
  Image result{shape, {}};
  result.pixels.resize(static_cast<std::size_t>(element_count(shape)));
  const auto height = static_cast<double>(image.shape[0]), width = static_cast<double>(image.shape[1]);
  // Of what is scaled by the larger factor, all is seen; of the other extent a part, from the middle.
  const double scale =
      std::max(static_cast<double>(shape[0]) / height, static_cast<double>(shape[1]) / width);
  const double seen_y = static_cast<double>(shape[0]) / (scale * height),
               seen_x = static_cast<double>(shape[1]) / (scale * width);
  const auto edge = [](double at) { return static_cast<float>(std::clamp(at, 0.0, 1.0)); };
  const auto extent = [](std::int64_t pixels) { return static_cast<int>(pixels); };
  if (stbir_resize_region(image.pixels.data(), extent(image.shape[1]), extent(image.shape[0]), 0,
                          result.pixels.data(), extent(shape[1]), extent(shape[0]), 0, STBIR_TYPE_UINT8,
                          extent(shape[2]), STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP, STBIR_EDGE_CLAMP,
                          STBIR_FILTER_TRIANGLE, STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr,
                          edge(0.5 - seen_x / 2), edge(0.5 - seen_y / 2), edge(0.5 + seen_x / 2),
                          edge(0.5 + seen_y / 2)) == 0)
    throw Error(ErrorKind::run_time, "no memory to scale an image of " + shape_text(image.shape),
                "free some");
  return result;
}

}  // namespace alpa
