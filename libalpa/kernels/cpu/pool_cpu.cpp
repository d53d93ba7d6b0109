#include <algorithm>
#include <limits>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/window.h"

namespace alpa::ops {
namespace {

/// Channels that are worked on at once, in registers or the first cache.
constexpr std::int64_t kChannels = 64;

/// Images [n h w c] and the windows [n y z c] over them.
struct Pool {
  std::int64_t n, h, w, y, z, channels;
  Window down, across;

  Pool(const Shape& image, const Shape& places, const std::array<Window, 2>& windows)
      : n(image[0]),
        h(image[1]),
        w(image[2]),
        y(places[1]),
        z(places[2]),
        channels(image[3]),
        down(windows[0]),
        across(windows[1]) {}

  std::int64_t in_image(std::int64_t i, std::int64_t row, std::int64_t column) const {
    return ((i * h + row) * w + column) * channels;
  }
  std::int64_t in_places(std::int64_t i, std::int64_t row, std::int64_t column) const {
    return ((i * y + row) * z + column) * channels;
  }

  /// body(index of the element within the window, place of its first channel in the image) for what the
  /// window at (row, column) holds of image i.
  template <class Body>
  void for_window(std::int64_t i, std::int64_t row, std::int64_t column, const Body& body) const {
    for (std::int64_t p = 0; p < down.size; ++p)
      for (std::int64_t q = 0; q < across.size; ++q) {
        const std::int64_t r = row * down.stride + p - down.padding;
        const std::int64_t c = column * across.stride + q - across.padding;
        if (r >= 0 && r < h && c >= 0 && c < w) body(p * across.size + q, in_image(i, r, c));
      }
  }

  /// body(index of the element within a window, place of the window's first channel) for all windows that
  /// hold the element (row, column) of image i.
  template <class Body>
  void for_windows_over(std::int64_t i, std::int64_t row, std::int64_t column, const Body& body) const {
    for (std::int64_t p = 0; p < down.size; ++p)
      for (std::int64_t q = 0; q < across.size; ++q) {
        const std::int64_t r = row + down.padding - p, c = column + across.padding - q;
        if (r < 0 || c < 0 || r % down.stride != 0 || c % across.stride != 0) continue;
        if (r / down.stride < y && c / across.stride < z)
          body(p * across.size + q, in_places(i, r / down.stride, c / across.stride));
      }
  }
};

/// body(image, row, column, first channel, channels) for all places of `rows` x `columns` in n images.
template <class Body>
void for_channels(const Pool& pool, std::int64_t rows, std::int64_t columns, const Body& body) {
  const std::int64_t work = columns * pool.channels * pool.down.size * pool.across.size;
  for_ranges(pool.n * rows, row_grain(work), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line)
      for (std::int64_t column = 0; column < columns; ++column)
        for (std::int64_t c = 0; c < pool.channels; c += kChannels)
          body(line / rows, line % rows, column, c, std::min(kChannels, pool.channels - c));
  });
}

template <class T>
void add_to(float* sums, const T* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) sums[j] += to_float(x[j]);
}

/// Where x is above the maxima so far, it and `place` take their place.
template <class T>
void raise(float* maxima, std::int32_t* places, const T* x, std::int32_t place, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float element = to_float(x[j]);
    const bool above = element > maxima[j];
    maxima[j] = above ? element : maxima[j];
    places[j] = above ? place : places[j];
  }
}

template <class T>
void add_where(float* sums, const T* x, const std::int32_t* places, std::int32_t place, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) sums[j] += places[j] == place ? to_float(x[j]) : 0.0f;
}

template <class T>
void write(const float* from, float scale, T* to, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) to[j] = from_float<T>(from[j] * scale);
}

/// The maxima of windows go to `maxima`, their places in the windows to `places`, wherever either is wanted.
template <class T>
void find_maxima(const Pool& pool, const T* x, T* maxima, std::int32_t* places) {
  for_channels(pool, pool.y, pool.z,
               [=](std::int64_t i, std::int64_t row, std::int64_t column, std::int64_t c, std::int64_t n) {
                 float best[kChannels];
                 std::int32_t at[kChannels];
                 std::fill_n(best, n, -std::numeric_limits<float>::infinity());
                 std::fill_n(at, n, 0);
                 pool.for_window(i, row, column, [&](std::int64_t place, std::int64_t element) {
                   raise(best, at, x + element + c, static_cast<std::int32_t>(place), n);
                 });
                 const std::int64_t to = pool.in_places(i, row, column) + c;
                 if (maxima) write(best, 1.0f, maxima + to, n);
                 if (places) std::copy_n(at, n, places + to);
               });
}

template <class T>
void spread_maxima(const Pool& pool, const T* dy, const std::int32_t* places, T* dx) {
  for_channels(pool, pool.h, pool.w,
               [=](std::int64_t i, std::int64_t row, std::int64_t column, std::int64_t c, std::int64_t n) {
                 float sums[kChannels];
                 std::fill_n(sums, n, 0.0f);
                 pool.for_windows_over(i, row, column, [&](std::int64_t place, std::int64_t window) {
                   add_where(sums, dy + window + c, places + window + c, static_cast<std::int32_t>(place), n);
                 });
                 write(sums, 1.0f, dx + pool.in_image(i, row, column) + c, n);
               });
}

template <class T>
void average(const Pool& pool, const T* x, float scale, T* y) {
  for_channels(pool, pool.y, pool.z,
               [=](std::int64_t i, std::int64_t row, std::int64_t column, std::int64_t c, std::int64_t n) {
                 float sums[kChannels];
                 std::fill_n(sums, n, 0.0f);
                 pool.for_window(i, row, column, [&](std::int64_t, std::int64_t element) {
                   add_to(sums, x + element + c, n);
                 });
                 write(sums, scale, y + pool.in_places(i, row, column) + c, n);
               });
}

template <class T>
void spread_average(const Pool& pool, const T* dy, float scale, T* dx) {
  for_channels(pool, pool.h, pool.w,
               [=](std::int64_t i, std::int64_t row, std::int64_t column, std::int64_t c, std::int64_t n) {
                 float sums[kChannels];
                 std::fill_n(sums, n, 0.0f);
                 pool.for_windows_over(i, row, column, [&](std::int64_t, std::int64_t window) {
                   add_to(sums, dy + window + c, n);
                 });
                 write(sums, scale, dx + pool.in_image(i, row, column) + c, n);
               });
}

float one_over_window(const Pool& pool) {
  return 1.0f / static_cast<float>(pool.down.size * pool.across.size);
}

}  // namespace

std::unique_ptr<Kernel> max_pool_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Pool pool(shape.operands[0].shape, shape.results[0].shape, windows_of(shape.attributes));
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      find_maxima<T>(pool, call.operand<T>(0), call.result<T>(0), nullptr);
    });
  });
}

std::unique_ptr<Kernel> max_pool_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->t")) return nullptr;
  const Pool pool(shape.operands[1].shape, shape.operands[0].shape, windows_of(shape.attributes));
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      auto* places = static_cast<std::int32_t*>(call.workspace);
      find_maxima<T>(pool, call.operand<T>(1), nullptr, places);
      spread_maxima<T>(pool, call.operand<T>(0), places, call.result<T>(0));
    });
  });
}

std::unique_ptr<Kernel> average_pool_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Pool pool(shape.operands[0].shape, shape.results[0].shape, windows_of(shape.attributes));
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      average<T>(pool, call.operand<T>(0), one_over_window(pool), call.result<T>(0));
    });
  });
}

std::unique_ptr<Kernel> average_pool_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Pool pool(shape.results[0].shape, shape.operands[0].shape, windows_of(shape.attributes));
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      spread_average<T>(pool, call.operand<T>(0), one_over_window(pool), call.result<T>(0));
    });
  });
}

std::unique_ptr<Kernel> upsample_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->t")) return nullptr;
  const Shape& image = shape.operands[0].shape;
  const std::int64_t factor = shape.attributes.integer("factor"), w = image[2], channels = image[3];
  const std::int64_t rows = image[0] * image[1] * factor;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* x = call.operand<T>(0);
      T* y = call.result<T>(0);
      for_ranges(rows, row_grain(w * factor * channels), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row)
          for (std::int64_t column = 0; column < w * factor; ++column)
            std::copy_n(x + (row / factor * w + column / factor) * channels, channels,
                        y + (row * w * factor + column) * channels);
      });
    });
  });
}

}  // namespace alpa::ops
