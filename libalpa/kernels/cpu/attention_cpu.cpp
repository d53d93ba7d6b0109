#include "libalpa/kernels/cpu/attention_cpu.h"

#include <cmath>
#include <limits>

#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/vector_math.h"

namespace alpa::ops {
namespace {

constexpr std::int64_t kTileStride = AttentionScratch::kKeyBlock;

/// What is known of one query row while its keys come by: the maximum of the scores so far, and the sum of
/// their exponentials relative to it.
struct RowState {
  float maximum, sum;
};

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Entries of a row of scores that are worked on at once: what is masked up to the next multiple is, too.
constexpr std::int64_t kRowStep = 16;

/// Turns products of one query row with `count` keys into exponentials relative to the row's new maximum,
/// rounded to `to`; those in [from, visible) are not masked. Returns the factor that brings older sums to
/// that maximum.
template <class Element>
float soften_row(float* row, Element* to, std::int64_t from, std::int64_t visible, std::int64_t count,
                 float scale, RowState& state) {
  const std::int64_t whole = std::min(count, (visible + kRowStep - 1) / kRowStep * kRowStep);
  const bool sees_any = from < visible;
  std::fill(to, to + (sees_any ? from : count), Element{});
  if (!sees_any) return 1.0f;
  std::fill(to + whole, to + count, Element{});
  float maximum = state.maximum;
#pragma omp simd reduction(max : maximum)
  for (std::int64_t i = from; i < whole; ++i) {
    const float score = i < visible ? row[i] * scale : kLowest;
    row[i] = score;
    maximum = score > maximum ? score : maximum;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = from; i < whole; ++i) {
    row[i] = fast_exp_of_softmax(row[i] - maximum);
    sum += row[i];
  }
  round_row(row + from, to + from, whole - from);
  const float factor = fast_exp_of_softmax(state.maximum - maximum);
  state = {maximum, state.sum * factor + sum};
  return factor;
}

void scale_row(float* row, float factor, std::int64_t width) {
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) row[c] *= factor;
}

/// A row that has seen no key yet, and one that has seen keys of earlier calls.
RowState state_after(float log_sum) { return {log_sum, log_sum == kLowest ? 0.0f : 1.0f}; }

/// One block of queries of one head against all keys that they see. T: of the tensors, Element: of what is
/// multiplied.
template <class T, class Element>
class ForwardBlock {
 public:
  ForwardBlock(const AttentionExtents& extents, const AttentionScratch& scratch, const KernelCall& call)
      : extents_(extents),
        scratch_(scratch),
        call_(call),
        first_keys_(call, 3, 1, extents),
        position_(query_position(call.operands[0], call.operands[1])) {}

  void operator()(std::int64_t task, float* own) const {
    // Later blocks see more keys; they come first so that no worker ends with a long one.
    const AttentionExtents& e = extents_;
    const std::int64_t block = e.query_blocks() - 1 - task / (e.batch * e.heads);
    const auto [batch, head] = HeadPlace(task % (e.batch * e.heads), e.batch, e.heads);
    const std::int64_t first = block * AttentionScratch::kQueryBlock;
    const auto rows = [&, batch = batch, head = head](auto* tensor) {
      return head_rows(tensor, batch, e.queries, e.heads, e.width, head, first,
                       AttentionScratch::kQueryBlock);
    };
    float* tile = own;
    auto* states = reinterpret_cast<RowState*>(tile + scratch_.tiles);
    float* query_buffer = tile + scratch_.tiles + scratch_.row_values;
    float* key_buffer = query_buffer + scratch_.query_blocks;

    const HeadRows<T> target = rows(call_.result<T>(0));
    const HeadRows<const Element> query = rows_as<Element>(rows(call_.operand<T>(0)), e.width, query_buffer);
    Element* weights = tile_as<Element>(tile, key_buffer);
    const HeadRows<float> output = sums_of(target, e.width, query_buffer + scratch_.query_blocks / 2);
    float* log_sums = call_.result<float>(1) + (batch * e.heads + head) * e.queries + first;
    for (std::int64_t r = 0; r < query.count; ++r)
      states[r] = state_after(call_.accumulate ? log_sums[r] : kLowest);
    const std::int64_t seen = e.visible(position_ + first + query.count - 1);
    const std::int64_t from =
        first_keys_.of(batch, first) / AttentionScratch::kKeyBlock * AttentionScratch::kKeyBlock;
    if (call_.accumulate && seen <= from) return;
    if (call_.accumulate)
      resume(output, target, e.width);
    else if (seen <= from)
      clear(output, e.width);
    for (std::int64_t k = from; k < seen; k += AttentionScratch::kKeyBlock) {
      const std::int64_t count = std::min(AttentionScratch::kKeyBlock, seen - k);
      add_keys({query, output, states, batch, first}, key_rows(1, batch, head, k, count, key_buffer),
               key_rows(2, batch, head, k, count, key_buffer + scratch_.key_block), k,
               call_.accumulate || k > from, tile, weights);
    }
    finish(output, states, log_sums);
    store(output, target, e.width);
  }

 private:
  /// A block of queries with what is known of them so far.
  struct Queries {
    HeadRows<const Element> query;
    HeadRows<float> output;
    RowState* states;
    std::int64_t batch, first;
  };

  HeadRows<const Element> key_rows(std::size_t operand, std::int64_t batch, std::int64_t head,
                                   std::int64_t first, std::int64_t count, float* buffer) const {
    const AttentionExtents& e = extents_;
    return rows_as<Element>(
        head_rows(call_.operand<T>(operand), batch, e.keys, e.groups, e.width, head / e.share, first, count),
        e.width, buffer);
  }

  /// `adds`: to what the output holds.
  void add_keys(const Queries& q, HeadRows<const Element> key, HeadRows<const Element> value,
                std::int64_t first_key, bool adds, float* tile, Element* weights) const {
    const std::int64_t width = extents_.width;
    multiply({q.query.count, key.count, width}, {{false, q.query.stride}, q.query.data},
             {{true, key.stride}, key.data}, 0.0f, {tile, kTileStride});
    run_vectorized(best_instruction_set(), 0, q.query.count, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto within = [&](std::int64_t at) {
          return std::clamp(at - first_key, std::int64_t{0}, key.count);
        };
        const std::int64_t visible = extents_.causal ? within(position_ + q.first + r + 1) : key.count;
        const float factor = soften_row(tile + r * kTileStride, weights + r * kTileStride,
                                        within(first_keys_.of(q.batch, q.first + r)), visible, key.count,
                                        extents_.scale, q.states[r]);
        if (adds) scale_row(q.output.data + r * q.output.stride, factor, width);
      }
    });
    multiply({q.query.count, width, key.count}, {{false, kTileStride}, weights},
             {{false, value.stride}, value.data}, adds ? 1.0f : 0.0f, {q.output.data, q.output.stride});
  }

  void finish(HeadRows<float> output, const RowState* states, float* log_sums) const {
    run_vectorized(best_instruction_set(), 0, output.count, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const RowState& state = states[r];
        log_sums[r] = state.sum > 0 ? state.maximum + std::log(state.sum) : kLowest;
        scale_row(output.data + r * output.stride, state.sum > 0 ? 1.0f / state.sum : 0.0f, extents_.width);
      }
    });
  }

  const AttentionExtents& extents_;
  const AttentionScratch& scratch_;
  const KernelCall& call_;
  FirstKeys first_keys_;
  std::int64_t position_;  ///< of the first query
};

}  // namespace

std::unique_ptr<Kernel> attention_cpu(const KernelShape& shape) {
  if (!types_match(shape, shape.operands.size() > 3 ? "ttti->tf" : "ttt->tf")) return nullptr;
  const AttentionExtents extents(shape.operands[0], shape.operands[1], shape.attributes);
  const AttentionScratch scratch = attention_scratch({shape.operands, shape.attributes});
  return for_attention_types(shape.operands[0].dtype, [&](auto zero, auto multiplied) {
    using Block = ForwardBlock<decltype(zero), decltype(multiplied)>;
    return host_kernel([extents, scratch](const KernelCall& call) {
      for_tasks(extents.batch * extents.heads * extents.query_blocks(), 2 * extents.flops(), scratch,
                call.workspace, Block(extents, scratch, call));
    });
  });
}

}  // namespace alpa::ops
