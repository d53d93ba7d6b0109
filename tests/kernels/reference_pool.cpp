#include <functional>
#include <limits>

#include "tests/kernels/reference_window.h"

namespace alpa {
namespace {

/// Images [n h w c] and windows [n y z c] over them.
struct Pool {
  std::size_t n, channels;
  Line down, across;

  Pool(const ReferenceCall& c, std::size_t height, std::size_t width)
      : n(c.extent(0, 0)),
        channels(c.extent(0, 3)),
        down(c, "_h", height, setting(c, "window", "_h", 1)),
        across(c, "_w", width, setting(c, "window", "_w", 1)) {}

  double area() const { return static_cast<double>(down.size * across.size); }
  std::size_t x_size() const { return n * down.extent * across.extent * channels; }
  std::size_t y_size() const { return n * down.places * across.places * channels; }

  /// body(element of x, element of y) for each element of each window.
  void for_elements(const std::function<void(std::size_t, std::size_t)>& body) const {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t y = 0; y < down.places; ++y)
        for (std::size_t z = 0; z < across.places; ++z)
          for (std::size_t p = 0; p < down.size; ++p)
            for (std::size_t q = 0; q < across.size; ++q) {
              const std::size_t h = down.element(y, p), w = across.element(z, q);
              if (h >= down.extent || w >= across.extent) continue;
              for (std::size_t c = 0; c < channels; ++c)
                body(((i * down.extent + h) * across.extent + w) * channels + c,
                     ((i * down.places + y) * across.places + z) * channels + c);
            }
  }

  /// For each window the first of its largest elements.
  std::vector<std::size_t> maxima(const Values& x) const {
    std::vector<std::size_t> at(y_size(), x_size());
    for_elements([&](std::size_t i, std::size_t o) {
      if (at[o] == x_size() || x[i] > x[at[o]]) at[o] = i;
    });
    return at;
  }
};

}  // namespace

ReferenceResults max_pool_reference(const ReferenceCall& c) {
  Values y;
  for (const std::size_t i : Pool(c, c.extent(0, 1), c.extent(0, 2)).maxima(c.in[0])) y.push_back(c.in[0][i]);
  return {y};
}

ReferenceResults max_pool_grad_reference(const ReferenceCall& c) {
  const Pool pool(c, c.extent(1, 1), c.extent(1, 2));
  Values dx(pool.x_size(), 0.0);
  const std::vector<std::size_t> maxima = pool.maxima(c.in[1]);
  for (std::size_t o = 0; o < maxima.size(); ++o) dx[maxima[o]] += c.in[0][o];
  return {dx};
}

ReferenceResults average_pool_reference(const ReferenceCall& c) {
  const Pool pool(c, c.extent(0, 1), c.extent(0, 2));
  Values y(pool.y_size(), 0.0);
  pool.for_elements([&](std::size_t i, std::size_t o) { y[o] += c.in[0][i] / pool.area(); });
  return {y};
}

ReferenceResults average_pool_grad_reference(const ReferenceCall& c) {
  const Pool pool(c, static_cast<std::size_t>(c.attributes.integer("size_h")),
                  static_cast<std::size_t>(c.attributes.integer("size_w")));
  Values dx(pool.x_size(), 0.0);
  pool.for_elements([&](std::size_t i, std::size_t o) { dx[i] += c.in[0][o] / pool.area(); });
  return {dx};
}

ReferenceResults upsample_reference(const ReferenceCall& c) {
  const auto factor = static_cast<std::size_t>(c.attributes.integer("factor"));
  const std::size_t h = c.extent(0, 1), w = c.extent(0, 2), channels = c.extent(0, 3);
  Values y;
  for (std::size_t i = 0; i < c.extent(0, 0); ++i)
    for (std::size_t row = 0; row < h * factor; ++row)
      for (std::size_t column = 0; column < w * factor; ++column)
        for (std::size_t d = 0; d < channels; ++d)
          y.push_back(c.in[0][((i * h + row / factor) * w + column / factor) * channels + d]);
  return {y};
}

ReferenceResults concat_reference(const ReferenceCall& c) {
  Values both;
  for (std::size_t row = 0; row < c.in[0].size() / c.width(0); ++row)
    for (const std::size_t operand : {std::size_t{0}, std::size_t{1}})
      for (std::size_t i = 0; i < c.width(operand); ++i)
        both.push_back(c.in[operand][row * c.width(operand) + i]);
  return {both};
}

ReferenceResults slice_reference(const ReferenceCall& c) {
  const auto begin = static_cast<std::size_t>(c.attributes.integer("begin")),
             width = static_cast<std::size_t>(c.attributes.integer("size_c"));
  Values part;
  for (std::size_t row = 0; row < c.in[0].size() / c.width(0); ++row)
    for (std::size_t i = 0; i < width; ++i) part.push_back(c.in[0][row * c.width(0) + begin + i]);
  return {part};
}

ReferenceResults slice_grad_reference(const ReferenceCall& c) {
  const auto begin = static_cast<std::size_t>(c.attributes.integer("begin")),
             width = static_cast<std::size_t>(c.attributes.integer("size_e"));
  Values whole(c.in[0].size() / c.width(0) * width, 0.0);
  for (std::size_t i = 0; i < c.in[0].size(); ++i)
    whole[i / c.width(0) * width + begin + i % c.width(0)] = c.in[0][i];
  return {whole};
}

}  // namespace alpa
