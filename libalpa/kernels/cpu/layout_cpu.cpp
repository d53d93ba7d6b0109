#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "libalpa/base/float_types.h"
#include "libalpa/kernels/contraction.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

/// `count` elements that lie one after another, each as the nearest S.
template <class T, class S>
void copy_elements(const T* from, S* to, std::int64_t count) {
  if constexpr (std::is_same_v<T, S>) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<S>(to_float(from[i]));
  }
}

/// Copies elements of type T, as type S, along nested loops; `left` strides the source, `result` the target.
///
/// Two loops are innermost: the one that is contiguous in the target and the one that is contiguous in the
/// source (the same one where nothing is transposed). They are walked in square blocks, so that both sides
/// are read and written in whole cache lines.
class StridedCopy {
 public:
  explicit StridedCopy(std::vector<ContractionLoop> loops) : outer_(std::move(loops)) {
    take_inner(&ContractionLoop::result, columns_);
    if (columns_.left != 1) take_inner(&ContractionLoop::left, rows_);
    runs_ = trip_count(outer_);
  }

  template <class T, class S>
  void run(const T* from, S* to) const {
    if (runs_ == 1 && columns_.left == 1) {
      for_ranges(columns_.size, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
        copy_elements(from + begin, to + begin, end - begin);
      });
      return;
    }
    const std::int64_t blocks = (rows_.size + kBlock - 1) / kBlock;
    const std::int64_t block_elements = std::min(rows_.size, kBlock) * columns_.size;
    for_ranges(runs_ * blocks, row_grain(block_elements), [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task)
        copy_rows(task / blocks, task % blocks * kBlock, from, to);
    });
  }

 private:
  static constexpr std::int64_t kBlock = 32;

  /// Moves the loop whose stride is 1 there out of outer_.
  void take_inner(std::int64_t ContractionLoop::*stride, ContractionLoop& inner) {
    const auto at =
        std::find_if(outer_.begin(), outer_.end(), [&](const auto& loop) { return loop.*stride == 1; });
    if (at == outer_.end()) return;
    inner = *at;
    outer_.erase(at);
  }

  template <class T, class S>
  void copy_rows(std::int64_t run, std::int64_t first_row, const T* from, S* to) const {
    for (std::size_t d = outer_.size(); d-- > 0;) {
      const std::int64_t place = run % outer_[d].size;
      run /= outer_[d].size;
      from += place * outer_[d].left;
      to += place * outer_[d].result;
    }
    const std::int64_t last_row = first_row + kBlock < rows_.size ? first_row + kBlock : rows_.size;
    if (columns_.left == 1) {
      copy_elements(from, to, columns_.size);
      return;
    }
    for (std::int64_t c0 = 0; c0 < columns_.size; c0 += kBlock) {
      const std::int64_t c1 = c0 + kBlock < columns_.size ? c0 + kBlock : columns_.size;
      for (std::int64_t r = first_row; r < last_row; ++r)
        for (std::int64_t c = c0; c < c1; ++c)
          copy_elements(from + r * rows_.left + c * columns_.left, to + r * rows_.result + c, 1);
    }
  }

  std::vector<ContractionLoop> outer_;
  ContractionLoop rows_, columns_;
  std::int64_t runs_ = 1;
};

/// Copies elements from and to these places in the call's tensors.
template <class T, class S>
std::unique_ptr<Kernel> copy_kernel(StridedCopy copy, std::int64_t from_element, std::int64_t to_element) {
  return host_kernel([=, copy = std::move(copy)](const KernelCall& call) {
    copy.run(call.operand<T>(0) + from_element, call.result<S>(0) + to_element);
  });
}

/// As they are.
std::unique_ptr<Kernel> same_copy_kernel(StridedCopy copy, DType type, std::int64_t from_element,
                                         std::int64_t to_element) {
  return dtype_bytes(type) == 2
             ? copy_kernel<std::uint16_t, std::uint16_t>(std::move(copy), from_element, to_element)
             : copy_kernel<std::uint32_t, std::uint32_t>(std::move(copy), from_element, to_element);
}

}  // namespace

std::unique_ptr<Kernel> make_box_copy_cpu(const Box& from, const Box& to, const Shape& extent,
                                          DType from_type, DType to_type) {
  assert(extent.size() == from.tensor.size() && extent.size() == to.tensor.size());
  StridedCopy copy(copy_loops_of(from, to, extent));
  const std::int64_t from_element = first_element(from), to_element = first_element(to);
  if (from_type == to_type) return same_copy_kernel(std::move(copy), to_type, from_element, to_element);
  if (from_type == DType::f32 && to_type == DType::bf16)
    return copy_kernel<float, Bfloat16>(std::move(copy), from_element, to_element);
  if (from_type == DType::bf16 && to_type == DType::f32)
    return copy_kernel<Bfloat16, float>(std::move(copy), from_element, to_element);
  return nullptr;
}

std::unique_ptr<Kernel> ops::rearrange_cpu(const KernelShape& shape) {
  if (shape.operands.size() != 1 || shape.results.size() != 1 ||
      shape.operands[0].dtype != shape.results[0].dtype)
    return nullptr;
  const ShardingRule rule = rule_of(rearrange, {shape.operands, shape.attributes});
  for (std::size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.reduces(0, static_cast<int>(f))) return nullptr;
  return same_copy_kernel(StridedCopy(copy_loops_of(rule)), shape.operands[0].dtype, 0, 0);
}

}  // namespace alpa
