#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"

namespace alpa::ops {
namespace {

/// The positions of each row's id, gathered row by row in ascending order (counting sort).
class PositionsByRow {
 public:
  PositionsByRow(std::int64_t rows, std::int64_t ids)
      : ends_(static_cast<std::size_t>(rows) + 1), positions_(static_cast<std::size_t>(ids)) {}

  void sort(const std::int32_t* ids, std::int64_t first_row) {
    const auto rows = static_cast<std::int64_t>(ends_.size()) - 1;
    std::fill(ends_.begin(), ends_.end(), 0);
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      const std::int64_t row = ids[i] - first_row;
      if (row >= 0 && row < rows) ++ends_[static_cast<std::size_t>(row) + 1];
    }
    for (std::size_t row = 1; row < ends_.size(); ++row) ends_[row] += ends_[row - 1];
    // Filling moves each row's start to its end, which is the next row's start: ends_[row] then ends row
    // `row`.
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      const std::int64_t row = ids[i] - first_row;
      if (row >= 0 && row < rows) positions_[ends_[row]++] = static_cast<std::int32_t>(i);
    }
  }

  const std::int32_t* begin(std::int64_t row) const {
    return positions_.data() + (row == 0 ? 0 : end_of(row - 1));
  }
  const std::int32_t* end(std::int64_t row) const { return positions_.data() + end_of(row); }

 private:
  std::int32_t end_of(std::int64_t row) const { return ends_[row]; }

  std::vector<std::int32_t> ends_, positions_;
};

constexpr std::int64_t kColumns = 256;

/// One row of the table's gradient: the sum of dy over the row's positions.
template <class T, class Sum>
void sum_row(const T* dy, const std::int32_t* begin, const std::int32_t* end, std::int64_t width, bool add,
             Sum* row) {
  float sum[kColumns];
  for (std::int64_t first = 0; first < width; first += kColumns) {
    const std::int64_t n = width - first < kColumns ? width - first : kColumns;
    for (std::int64_t c = 0; c < n; ++c) sum[c] = add ? to_float(row[first + c]) : 0.0f;
    for (const std::int32_t* p = begin; p != end; ++p) {
      const T* from = dy + *p * width + first;
#pragma omp simd
      for (std::int64_t c = 0; c < n; ++c) sum[c] += to_float(from[c]);
    }
    for (std::int64_t c = 0; c < n; ++c) row[first + c] = from_float<Sum>(sum[c]);
  }
}

template <class T, class Sum>
std::unique_ptr<Kernel> embedding_grad_kernel(const KernelShape& shape) {
  const std::int64_t rows = shape.results[0].shape[0], width = shape.results[0].shape[1];
  const std::int64_t ids = element_count(shape.operands[1].shape);
  PositionsByRow positions(rows, ids);
  return host_kernel([=, positions = std::move(positions)](const KernelCall& call) mutable {
    const T* dy = call.operand<T>(0);
    Sum* table = call.result<Sum>(0);
    const bool add = call.accumulate;
    positions.sort(call.operand<std::int32_t>(1), origin_of(call.results[0], 0));
    const InstructionSet set = best_instruction_set();
    const auto sum_rows = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        if (add && positions.begin(r) == positions.end(r)) continue;
        sum_row(dy, positions.begin(r), positions.end(r), width, add, table + r * width);
      }
    };
    if ((rows + ids) * width < 2 * kElementGrain) {
      run_vectorized(set, 0, rows, sum_rows);
      return;
    }
    // Rows are unequal work (frequent ids); each is summed by one thread, so handing them out as they come is
    // safe.
    constexpr std::int64_t chunk = 8;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t first = 0; first < rows; first += chunk)
      run_vectorized(set, first, std::min(rows, first + chunk), sum_rows);
  });
}

/// The positions of ids that are there, by id and those of one id in ascending order.
class PositionsById {
 public:
  explicit PositionsById(std::int64_t ids) {
    sorted_.reserve(static_cast<std::size_t>(ids));
    positions_.reserve(static_cast<std::size_t>(ids));
    starts_.reserve(static_cast<std::size_t>(ids) + 1);
  }

  void sort(const std::int32_t* ids, std::int64_t count) {
    sorted_.clear();
    for (std::int64_t i = 0; i < count; ++i)
      if (ids[i] >= 0)
        sorted_.push_back(static_cast<std::uint64_t>(ids[i]) << 32 | static_cast<std::uint64_t>(i));
    std::ranges::sort(sorted_);
    starts_.clear();
    positions_.clear();
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      if (i == 0 || id(i) != id(i - 1)) starts_.push_back(i);
      positions_.push_back(static_cast<std::int32_t>(sorted_[i] & 0xffffffffu));
    }
    starts_.push_back(sorted_.size());
  }

  std::int64_t different() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  std::int32_t id_of(std::int64_t n) const { return id(starts_[static_cast<std::size_t>(n)]); }
  const std::int32_t* begin(std::int64_t n) const {
    return positions_.data() + starts_[static_cast<std::size_t>(n)];
  }
  const std::int32_t* end(std::int64_t n) const { return begin(n + 1); }

 private:
  std::int32_t id(std::size_t i) const { return static_cast<std::int32_t>(sorted_[i] >> 32); }

  std::vector<std::uint64_t> sorted_;  ///< id and position
  std::vector<std::int32_t> positions_;
  std::vector<std::size_t> starts_;  ///< in these, of each id, and their end
};

template <class T>
std::unique_ptr<Kernel> distinct_rows_kernel(const KernelShape& shape) {
  const std::int64_t ids = element_count(shape.operands[1].shape), width = shape.operands[0].shape.back();
  PositionsById positions(ids);
  return host_kernel([=, positions = std::move(positions)](const KernelCall& call) mutable {
    const T* dy = call.operand<T>(0);
    float* rows = call.result<float>(0);
    auto* row_ids = call.result<std::int32_t>(1);
    positions.sort(call.operand<std::int32_t>(1), ids);
    const std::int64_t different = positions.different();
    for (std::int64_t n = 0; n < ids; ++n) row_ids[n] = n < different ? positions.id_of(n) : -1;
    if (!rows) return;
    const InstructionSet set = best_instruction_set();
    const auto sum_rows = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n)
        sum_row(dy, positions.begin(n), positions.end(n), width, false, rows + n * width);
    };
    for_ranges(different, row_grain(width * dtype_bytes(DType::f32)),
               [&](std::int64_t begin, std::int64_t end) { run_vectorized(set, begin, end, sum_rows); });
    std::fill(rows + different * width, rows + ids * width, 0.0f);
  });
}

}  // namespace

std::unique_ptr<Kernel> embedding_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ti->t")) return nullptr;
  const std::int64_t rows = shape.operands[0].shape[0], count = element_count(shape.operands[1].shape);
  const std::int64_t bytes = shape.operands[0].shape[1] * dtype_bytes(shape.operands[0].dtype);
  return host_kernel([=](const KernelCall& call) {
    const auto* table = call.operand<std::byte>(0);
    const std::int32_t* ids = call.operand<std::int32_t>(1);
    auto* out = call.result<std::byte>(0);
    const std::int64_t first = origin_of(call.operands[0], 0);
    for_ranges(count, row_grain(bytes), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = ids[i] - first;
        if (row >= 0 && row < rows)
          std::memcpy(out + i * bytes, table + row * bytes, static_cast<std::size_t>(bytes));
        else
          std::memset(out + i * bytes, 0, static_cast<std::size_t>(bytes));
      }
    });
  });
}

std::unique_ptr<Kernel> embedding_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ti->a")) return nullptr;
  const bool to_f32 = shape.results[0].dtype == DType::f32;
  if (shape.operands[0].dtype == DType::f32) return embedding_grad_kernel<float, float>(shape);
  return to_f32 ? embedding_grad_kernel<Bfloat16, float>(shape)
                : embedding_grad_kernel<Bfloat16, Bfloat16>(shape);
}

std::unique_ptr<Kernel> distinct_rows_cpu(const KernelShape& shape) {
  if (!types_match(shape, "ti->fi")) return nullptr;
  return shape.operands[0].dtype == DType::f32 ? distinct_rows_kernel<float>(shape)
                                               : distinct_rows_kernel<Bfloat16>(shape);
}

}  // namespace alpa::ops
