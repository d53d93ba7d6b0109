#include <limits>

#include "libalpa/kernels/cuda/attention_tensor_cores.h"
#include "libalpa/kernels/cuda/attention_tiles.cuh"
#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// A tile of queries against all keys they see, tile by tile, with a running maximum and sum of each row's
/// exponentials (FlashAttention). `position`: of the first query, counted from the first key. `resumes`: goes
/// on from the results of a call with other keys.
template <class T, int kWidth>
__global__ void attend(AttentionExtents e, FirstKeys first_keys, std::int64_t position, bool resumes,
                       const T* query, const T* key, const T* value, T* output, float* log_sums) {
  __shared__ VectorTile<kTileRows, kWidth> queries;
  __shared__ VectorTile<kTileColumns, kWidth> columns;  // keys and values in turn
  __shared__ ScoreTile weights;
  const QueryTile at(e, kTileRows);
  const std::int64_t row = at.first + own_row(), visible = seen_keys(e, position + row);
  const std::int64_t from = first_key(first_keys, e, at.head.batch, row);
  load(queries, at.head.queries(e, query, at.first), e.width);
  VectorPart<kWidth> sums;
  float maximum = kLowest, sum = 0;
  if (resumes && row < e.queries) {
    sums.resume(at.head.queries(e, output, row).data, e.width);
    maximum = log_sums[at.head.row_numbers(e) + row];
    sum = maximum == kLowest ? 0.0f : 1.0f;
  }
  const std::int64_t seen = seen_keys(e, position + at.first + kTileRows - 1);
  const std::int64_t begin = first_key(first_keys, e, at.head.batch, at.first) / kTileColumns * kTileColumns;
  for (std::int64_t first = begin; first < seen; first += kTileColumns) {
    __syncthreads();  // the values before are used up
    load(columns, at.head.keys(e, key, first), e.width);
    __syncthreads();
    float scores[kColumnsPerThread];
    multiply(queries, columns, scores);
    float new_maximum = maximum, new_sum = 0;
    for (int j = 0; j < kColumnsPerThread; ++j) {
      const std::int64_t column = first + own_column(j);
      scores[j] = column >= from && column < visible ? scores[j] * e.scale : kLowest;
      new_maximum = Maximum{}(new_maximum, scores[j]);
    }
    new_maximum = reduce_lanes<kRowThreads>(new_maximum, Maximum{});
    for (int j = 0; j < kColumnsPerThread; ++j) {
      const float weight = new_maximum == kLowest ? 0.0f : expf(scores[j] - new_maximum);
      weights[own_row()][own_column(j)] = weight;
      new_sum += weight;
    }
    const float factor = new_maximum == kLowest ? 1.0f : expf(maximum - new_maximum);
    sum = sum * factor + reduce_lanes<kRowThreads>(new_sum, Sum{});
    sums.scale(factor);
    maximum = new_maximum;
    __syncthreads();  // the keys are used up, the weights are there
    load(columns, at.head.keys(e, value, first), e.width);
    __syncthreads();
    sums.add(weights[own_row()], columns);
  }
  if (row >= e.queries) return;
  sums.scale(sum > 0 ? 1.0f / sum : 0.0f);
  const Vectors<T> target = at.head.queries(e, output, row);
  sums.store(target.data, e.width);
  if (own_column(0) == 0) log_sums[at.head.row_numbers(e) + row] = sum > 0 ? maximum + logf(sum) : kLowest;
}

}  // namespace

std::unique_ptr<Kernel> attention_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, shape.operands.size() > 3 ? "ttti->tf" : "ttt->tf")) return nullptr;
  if (runs_on_tensor_cores(shape)) return attention_on_tensor_cores(shape);
  const AttentionExtents e(shape.operands[0], shape.operands[1], shape.attributes);
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_width(e.width, [&](auto width) -> std::unique_ptr<Kernel> {
      constexpr int kWidth = decltype(width)::value;
      return cuda_kernel([e](const KernelCall& call, cudaStream_t stream) {
        launch(stream, QueryTile::blocks(e, kTileRows), kTileThreads, attend<T, kWidth>, e,
               FirstKeys(call, 3, 1, e), query_position(call.operands[0], call.operands[1]), call.accumulate,
               call.operand<T>(0), call.operand<T>(1), call.operand<T>(2), call.result<T>(0),
               call.result<float>(1));
      });
    });
  });
}

}  // namespace alpa::ops
