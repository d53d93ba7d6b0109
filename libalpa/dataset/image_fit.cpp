#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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

/// What one pixel of a scaled row or column is made of: neighbours in the source, each times its weight.
struct Taps {
  std::int64_t first = 0;  ///< pixel of the source
  std::vector<float> weights;
  std::int64_t end() const { return first + std::ssize(weights); }
};

/// The taps of `results` pixels, which lie in the middle of what `sources` pixels are when scaled by `scale`,
/// at least results / sources. Beyond its edges the source goes on as it ends.
std::vector<Taps> triangle_taps(std::int64_t sources, std::int64_t results, double scale) {
  const double radius = std::max(1.0, 1 / scale);
  const double begin = static_cast<double>(sources) / 2 - static_cast<double>(results) / (2 * scale);
  const auto inside = [sources](std::int64_t at) { return std::clamp<std::int64_t>(at, 0, sources - 1); };
  std::vector<Taps> all;
  for (std::int64_t i = 0; i < results; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) / scale - 0.5;
    const auto low = static_cast<std::int64_t>(std::ceil(centre - radius)),
               high = static_cast<std::int64_t>(std::floor(centre + radius));
    Taps taps{inside(low), std::vector<float>(static_cast<std::size_t>(inside(high) - inside(low) + 1))};
    double sum = 0;
    for (std::int64_t at = low; at <= high; ++at) {
      const double weight = 1 - std::abs(static_cast<double>(at) - centre) / radius;
      taps.weights[inside(at) - taps.first] += static_cast<float>(weight);
      sum += weight;
    }
    for (float& weight : taps.weights) weight /= static_cast<float>(sum);
    all.push_back(std::move(taps));
  }
  return all;
}

unsigned char level(float value) {
  return static_cast<unsigned char>(std::lround(std::clamp(value, 0.0f, 255.0f)));
}

}  // namespace

Image fitted(Image image, const Shape& shape) {
  image = with_channels(std::move(image), shape[2]);
  if (image.shape == shape) return image;
  // Of what is scaled by the larger factor, all is seen; of the other extent a part, from the middle.
  const double scale = std::max(static_cast<double>(shape[0]) / static_cast<double>(image.shape[0]),
                                static_cast<double>(shape[1]) / static_cast<double>(image.shape[1]));
  const std::vector<Taps> rows = triangle_taps(image.shape[0], shape[0], scale),
                          columns = triangle_taps(image.shape[1], shape[1], scale);
  const std::int64_t channels = shape[2], first_column = columns.front().first;
  const auto pixel = [&](std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>((y * image.shape[1] + x) * channels);
  };
  Image result{shape, {}};
  result.pixels.reserve(static_cast<std::size_t>(element_count(shape)));
  std::vector<float> row(static_cast<std::size_t>((columns.back().end() - first_column) * channels));
  for (const Taps& taps : rows) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (std::int64_t y = taps.first; y < taps.end(); ++y) {
      const unsigned char* const from = &image.pixels[pixel(y, first_column)];
      const float weight = taps.weights[y - taps.first];
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += weight * static_cast<float>(from[i]);
    }
    for (const Taps& across : columns)
      for (std::int64_t c = 0; c < channels; ++c) {
        auto at = static_cast<std::size_t>((across.first - first_column) * channels + c);
        float sum = 0;
        for (const float weight : across.weights) {
          sum += weight * row[at];
          at += static_cast<std::size_t>(channels);
        }
        result.pixels.push_back(level(sum));
      }
  }
  return result;
}

}  // namespace alpa
