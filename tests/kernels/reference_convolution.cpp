#include <functional>

#include "tests/kernels/reference_window.h"

namespace alpa {
namespace {

/// x [n h w (g c)], weight [p q c (g f)], y [n y z (g f)]
struct Convolution {
  std::size_t n, groups, channels, filters;  ///< of each group
  Line down, across;

  Convolution(const ReferenceCall& c, std::size_t samples, std::size_t in, std::size_t out, const Line& h,
              const Line& w)
      : n(samples),
        groups(static_cast<std::size_t>(c.attributes.integer("size_g", 1))),
        channels(in / groups),
        filters(out / groups),
        down(h),
        across(w) {}

  std::size_t x_size() const { return n * down.extent * across.extent * groups * channels; }
  std::size_t weight_size() const { return down.size * across.size * channels * groups * filters; }
  std::size_t y_size() const { return n * down.places * across.places * groups * filters; }

  /// body(element of x, element of weight, element of y) for each product of the convolution.
  void for_products(const std::function<void(std::size_t, std::size_t, std::size_t)>& body) const {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t y = 0; y < down.places; ++y)
        for (std::size_t z = 0; z < across.places; ++z)
          for (std::size_t p = 0; p < down.size; ++p)
            for (std::size_t q = 0; q < across.size; ++q) {
              const std::size_t h = down.element(y, p), w = across.element(z, q);
              if (h >= down.extent || w >= across.extent) continue;
              for (std::size_t g = 0; g < groups; ++g)
                for (std::size_t c = 0; c < channels; ++c)
                  for (std::size_t f = 0; f < filters; ++f)
                    body(((i * down.extent + h) * across.extent + w) * groups * channels + g * channels + c,
                         ((p * across.size + q) * channels + c) * groups * filters + g * filters + f,
                         ((i * down.places + y) * across.places + z) * groups * filters + g * filters + f);
            }
  }
};

std::size_t size(const ReferenceCall& c, const char* name) {
  return static_cast<std::size_t>(c.attributes.integer(name));
}

}  // namespace

ReferenceResults conv2d_reference(const ReferenceCall& c) {
  const Convolution v(c, c.extent(0, 0), c.extent(0, 3), c.extent(1, 3),
                      Line(c, "_h", c.extent(0, 1), c.extent(1, 0)),
                      Line(c, "_w", c.extent(0, 2), c.extent(1, 1)));
  Values result(v.y_size(), 0.0);
  v.for_products([&](std::size_t x, std::size_t w, std::size_t y) { result[y] += c.in[0][x] * c.in[1][w]; });
  return {result};
}

ReferenceResults conv2d_grad_input_reference(const ReferenceCall& c) {
  const auto groups = static_cast<std::size_t>(c.attributes.integer("size_g", 1));
  const Convolution v(c, c.extent(0, 0), c.extent(1, 2) * groups, c.extent(1, 3),
                      Line(c, "_h", size(c, "size_h"), c.extent(1, 0)),
                      Line(c, "_w", size(c, "size_w"), c.extent(1, 1)));
  Values dx(v.x_size(), 0.0);
  v.for_products([&](std::size_t x, std::size_t w, std::size_t y) { dx[x] += c.in[0][y] * c.in[1][w]; });
  return {dx};
}

ReferenceResults conv2d_grad_weight_reference(const ReferenceCall& c) {
  const Convolution v(c, c.extent(0, 0), c.extent(0, 3), c.extent(1, 3),
                      Line(c, "_h", c.extent(0, 1), size(c, "size_p")),
                      Line(c, "_w", c.extent(0, 2), size(c, "size_q")));
  Values dweight(v.weight_size(), 0.0);
  v.for_products([&](std::size_t x, std::size_t w, std::size_t y) { dweight[w] += c.in[0][x] * c.in[1][y]; });
  return {dweight};
}

}  // namespace alpa
