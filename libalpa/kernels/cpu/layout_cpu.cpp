#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "libalpa/kernels/contraction.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

/// Copies elements of type T along nested loops; `left` strides the source, `result` the target.
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

  template <class T>
  void run(const T* from, T* to) const {
    if (runs_ == 1 && columns_.left == 1) {
      for_ranges(columns_.size, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(T));
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

  template <class T>
  void copy_rows(std::int64_t run, std::int64_t first_row, const T* from, T* to) const {
    for (std::size_t d = outer_.size(); d-- > 0;) {
      const std::int64_t place = run % outer_[d].size;
      run /= outer_[d].size;
      from += place * outer_[d].left;
      to += place * outer_[d].result;
    }
    const std::int64_t last_row = first_row + kBlock < rows_.size ? first_row + kBlock : rows_.size;
    if (columns_.left == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(columns_.size) * sizeof(T));
      return;
    }
    for (std::int64_t c0 = 0; c0 < columns_.size; c0 += kBlock) {
      const std::int64_t c1 = c0 + kBlock < columns_.size ? c0 + kBlock : columns_.size;
      for (std::int64_t r = first_row; r < last_row; ++r)
        for (std::int64_t c = c0; c < c1; ++c)
          to[r * rows_.result + c] = from[r * rows_.left + c * columns_.left];
    }
  }

  std::vector<ContractionLoop> outer_;
  ContractionLoop rows_, columns_;
  std::int64_t runs_ = 1;
};

/// Copies elements of that many bytes, from and to these places in the call's tensors.
std::unique_ptr<Kernel> copy_kernel(StridedCopy copy, std::int64_t element_bytes, std::int64_t from_element,
                                    std::int64_t to_element) {
  return host_kernel([=, copy = std::move(copy)](const KernelCall& call) {
    if (element_bytes == 2)
      copy.run(call.operand<std::uint16_t>(0) + from_element, call.result<std::uint16_t>(0) + to_element);
    else
      copy.run(call.operand<std::uint32_t>(0) + from_element, call.result<std::uint32_t>(0) + to_element);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_box_copy_cpu(const Box& from, const Box& to, const Shape& extent, DType dtype) {
  assert(extent.size() == from.tensor.size() && extent.size() == to.tensor.size());
  return copy_kernel(StridedCopy(copy_loops_of(from, to, extent)), dtype_bytes(dtype), first_element(from),
                     first_element(to));
}

std::unique_ptr<Kernel> ops::rearrange_cpu(const KernelShape& shape) {
  if (shape.operands.size() != 1 || shape.results.size() != 1 ||
      shape.operands[0].dtype != shape.results[0].dtype)
    return nullptr;
  const ShardingRule rule = rule_of(rearrange, {shape.operands, shape.attributes});
  for (std::size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.reduces(0, static_cast<int>(f))) return nullptr;
  return copy_kernel(StridedCopy(copy_loops_of(rule)), dtype_bytes(shape.operands[0].dtype), 0, 0);
}

}  // namespace alpa
