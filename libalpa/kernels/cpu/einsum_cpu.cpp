#include <omp.h>

#include <algorithm>
#include <vector>

#include "libalpa/kernels/contraction.h"
#include "libalpa/kernels/cpu/bfloat16_product_cpu.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

/// Distances from the first element to each trip of nested loops, for one of the tensors.
std::vector<std::int64_t> offsets_of(const std::vector<ContractionLoop>& loops,
                                     std::int64_t ContractionLoop::*stride) {
  std::vector<std::int64_t> offsets{0};
  for (const ContractionLoop& loop : loops) {
    std::vector<std::int64_t> longer;
    longer.reserve(offsets.size() * static_cast<std::size_t>(loop.size));
    for (const std::int64_t base : offsets)
      for (std::int64_t i = 0; i < loop.size; ++i) longer.push_back(base + i * (loop.*stride));
    offsets = std::move(longer);
  }
  return offsets;
}

/// f32, one matrix product per batch element.
class SingleProduct {
 public:
  explicit SingleProduct(MatrixProduct product)
      : product_(std::move(product)),
        left_(offsets_of(product_.batch, &ContractionLoop::left)),
        right_(offsets_of(product_.batch, &ContractionLoop::right)),
        result_(offsets_of(product_.batch, &ContractionLoop::result)),
        parts_(has_few() ? parts_of_sum(extents()) : 1),
        partial_(static_cast<std::size_t>((parts_ - 1) * product_.rows * product_.columns)) {}

  void operator()(const KernelCall& call) {
    const float* left = call.operand<float>(product_.swapped ? 1 : 0);
    const float* right = call.operand<float>(product_.swapped ? 0 : 1);
    float* result = call.result<float>(0);
    const float keep = call.accumulate ? 1.0f : 0.0f;
    const MatrixProduct& p = product_;
    const auto batches = static_cast<std::int64_t>(left_.size());
    // With enough products for all threads each runs on one, otherwise all threads share one after another.
    // (An `if` clause would do that too, but then the inner regions would be nested, and start new threads
    // each time.)
    if (has_few()) {
      for (std::size_t b = 0; b < left_.size(); ++b) {
        const MatrixFactor of_left{p.left, left + left_[b]}, of_right{p.right, right + right_[b]};
        const ProductResult to{result + result_[b], p.result_leading};
        if (parts_ > 1)
          multiply_parts_of_sum(extents(), of_left, of_right, keep, to, parts_, partial_.data());
        else
          multiply_on_all_threads(extents(), of_left, of_right, keep, to);
      }
      return;
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      const auto b = static_cast<std::size_t>(batch);
      multiply(extents(), {p.left, left + left_[b]}, {p.right, right + right_[b]}, keep,
               {result + result_[b], p.result_leading});
    }
  }

 private:
  ProductExtents extents() const { return {product_.rows, product_.columns, product_.sum}; }

  /// Too few products for each thread to have some of its own.
  bool has_few() const { return std::ssize(left_) < std::int64_t{2} * host_threads(); }

  MatrixProduct product_;
  std::vector<std::int64_t> left_, right_, result_;
  std::int64_t parts_;
  std::vector<float> partial_;
};

/// Any contraction: tiles are gathered from wherever their elements lie, converted to f32, multiplied, and
/// scattered.
template <class T, class Result>
class GatheredProduct {
 public:
  explicit GatheredProduct(const Contraction& c)
      : batch_{offsets_of(c.batch, &ContractionLoop::left), offsets_of(c.batch, &ContractionLoop::right),
               offsets_of(c.batch, &ContractionLoop::result)},
        left_rows_(offsets_of(c.rows, &ContractionLoop::left)),
        left_sums_(offsets_of(c.sums, &ContractionLoop::left)),
        right_sums_(offsets_of(c.sums, &ContractionLoop::right)),
        right_columns_(offsets_of(c.columns, &ContractionLoop::right)),
        result_rows_(offsets_of(c.rows, &ContractionLoop::result)),
        result_columns_(offsets_of(c.columns, &ContractionLoop::result)),
        row_tiles_(tiles(result_rows_)),
        column_tiles_(tiles(result_columns_)),
        tasks_(static_cast<std::int64_t>(batch_.result.size()) * row_tiles_ * column_tiles_),
        workers_(std::min<std::int64_t>(host_threads(), tasks_)),
        scratch_(static_cast<std::size_t>(workers_ * kScratch)) {}

  void operator()(const KernelCall& call) {
    if (workers_ == 1) {
      for (std::int64_t task = 0; task < tasks_; ++task) run(call, task, scratch_.data());
      return;
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t w = 0; w < workers_; ++w)
      for (std::int64_t task = w; task < tasks_; task += workers_)
        run(call, task, scratch_.data() + w * kScratch);
  }

 private:
  static constexpr std::int64_t kTile = 256;
  static constexpr std::int64_t kScratch = 3 * kTile * kTile;

  struct Offsets {
    std::vector<std::int64_t> left, right, result;
  };

  static std::int64_t tiles(const std::vector<std::int64_t>& offsets) {
    return (static_cast<std::int64_t>(offsets.size()) + kTile - 1) / kTile;
  }

  /// A stretch of kTile offsets at most.
  static std::span<const std::int64_t> tile(const std::vector<std::int64_t>& offsets, std::int64_t index) {
    const auto first = static_cast<std::size_t>(index * kTile);
    return std::span(offsets).subspan(first,
                                      std::min(offsets.size() - first, static_cast<std::size_t>(kTile)));
  }

  static void gather(const T* from, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                     float* to) {
    for (const std::int64_t row : rows) {
      for (std::size_t c = 0; c < columns.size(); ++c) to[c] = to_float(from[row + columns[c]]);
      to += columns.size();
    }
  }

  void run(const KernelCall& call, std::int64_t task, float* scratch) const {
    const auto batch = static_cast<std::size_t>(task / (row_tiles_ * column_tiles_));
    const std::int64_t row_tile = task / column_tiles_ % row_tiles_, column_tile = task % column_tiles_;
    const auto rows = tile(left_rows_, row_tile), columns = tile(right_columns_, column_tile);
    const auto m = static_cast<std::int64_t>(rows.size()), n = static_cast<std::int64_t>(columns.size());
    float *a = scratch, *b = a + kTile * kTile, *c = b + kTile * kTile;
    for (std::int64_t k = 0; k < tiles(left_sums_); ++k) {
      const auto left_sums = tile(left_sums_, k), right_sums = tile(right_sums_, k);
      const auto depth = static_cast<std::int64_t>(left_sums.size());
      gather(call.operand<T>(0) + batch_.left[batch], rows, left_sums, a);
      gather(call.operand<T>(1) + batch_.right[batch], right_sums, columns, b);
      multiply({m, n, depth}, {{false, depth}, a}, {{false, n}, b}, k == 0 ? 0.0f : 1.0f, {c, n});
    }
    Result* result = call.result<Result>(0) + batch_.result[batch];
    const auto to_columns = tile(result_columns_, column_tile);
    for (const std::int64_t row : tile(result_rows_, row_tile))
      for (const std::int64_t column : to_columns) {
        Result& to = result[row + column];
        to = from_float<Result>(*c++ + (call.accumulate ? to_float(to) : 0.0f));
      }
  }

  Offsets batch_;
  std::vector<std::int64_t> left_rows_, left_sums_, right_sums_, right_columns_, result_rows_,
      result_columns_;
  std::int64_t row_tiles_, column_tiles_, tasks_, workers_;
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<Kernel> einsum_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tt->a")) return nullptr;
  const Contraction contraction = contraction_of(rule_of(einsum, {shape.operands, shape.attributes}));
  const auto product = matrix_product_of(contraction);
  const DType result = shape.results[0].dtype;
  if (shape.operands[0].dtype == DType::f32) {
    if (product) return host_kernel(SingleProduct(*product));
    return host_kernel(GatheredProduct<float, float>(contraction));
  }
  if (product) {
    const std::shared_ptr<Bfloat16Product> prepared = make_bfloat16_product(*product, result);
    return host_kernel([prepared, swapped = product->swapped](const KernelCall& call) {
      prepared->run(call.operands[swapped ? 1 : 0].data, call.operands[swapped ? 0 : 1].data,
                    call.results[0].data, call.accumulate);
    });
  }
  if (result == DType::f32) return host_kernel(GatheredProduct<Bfloat16, float>(contraction));
  return host_kernel(GatheredProduct<Bfloat16, Bfloat16>(contraction));
}

}  // namespace alpa::ops
