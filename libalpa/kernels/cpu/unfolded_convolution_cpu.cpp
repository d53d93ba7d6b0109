#include "libalpa/kernels/cpu/unfolded_convolution_cpu.h"

#include <algorithm>
#include <array>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/window.h"

namespace alpa {
namespace {

class Unfolding {
 public:
  explicit Unfolding(const ConvolutionExtents& e)
      : windows_(windows_of(e.attributes, e.weight[0], e.weight[1])),
        height_(e.x[1]),
        width_(e.x[2]),
        channels_(e.x[3]),
        y_rows_(e.y[1]),
        places_(e.y[2]) {}

  /// Of a window, and so of a row of the matrix.
  std::int64_t elements() const { return windows_[0].size * windows_[1].size * channels_; }

  /// The windows of rows [begin, end) of y, those of all images counted as one.
  void run(const float* x, std::int64_t begin, std::int64_t end, float* matrix) const {
    for_ranges((end - begin) * places_, row_grain(elements()),
               [=, this](std::int64_t first, std::int64_t last) {
                 for (std::int64_t place = first; place < last; ++place)
                   copy_window(x, begin + place / places_, place % places_, matrix + place * elements());
               });
  }

 private:
  void copy_window(const float* x, std::int64_t row, std::int64_t column, float* to) const {
    const auto& [down, across] = windows_;
    const float* image = x + row / y_rows_ * height_ * width_ * channels_;
    for (std::int64_t p = 0; p < down.size; ++p) {
      const std::int64_t h = row % y_rows_ * down.stride - down.padding + p * down.dilation;
      for (std::int64_t q = 0; q < across.size; ++q, to += channels_) {
        const std::int64_t w = column * across.stride - across.padding + q * across.dilation;
        if (h >= 0 && h < height_ && w >= 0 && w < width_)
          std::copy_n(image + (h * width_ + w) * channels_, channels_, to);
        else
          std::fill_n(to, channels_, 0.0f);
      }
    }
  }

  std::array<Window, 2> windows_;
  std::int64_t height_, width_, channels_, y_rows_, places_;
};

}  // namespace

std::unique_ptr<Kernel> unfolded_convolution(ConvolutionKind kind, const ConvolutionExtents& e,
                                             std::int64_t rows_at_once) {
  const Unfolding windows(e);
  const std::int64_t rows = e.y[0] * e.y[1], places = e.y[2], elements = windows.elements(), filters = e.y[3];
  return host_kernel([=](const KernelCall& call) {
    auto* const matrix = static_cast<float*>(call.workspace);
    for (std::int64_t begin = 0; begin < rows; begin += rows_at_once) {
      const std::int64_t end = std::min(rows, begin + rows_at_once), count = (end - begin) * places;
      windows.run(call.operand<float>(0), begin, end, matrix);
      const std::int64_t of_y = begin * places * filters;
      if (kind == ConvolutionKind::forward)
        multiply_on_all_threads({count, filters, elements}, {{false, elements}, matrix},
                                {{false, filters}, call.operand<float>(1)}, 0.0f,
                                {call.result<float>(0) + of_y, filters});
      else
        multiply_on_all_threads({elements, filters, count}, {{true, elements}, matrix},
                                {{false, filters}, call.operand<float>(1) + of_y},
                                call.accumulate || begin > 0 ? 1.0f : 0.0f, {call.result<float>(0), filters});
    }
  });
}

}  // namespace alpa
