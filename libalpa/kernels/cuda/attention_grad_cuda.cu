#include "libalpa/kernels/cuda/attention_tensor_cores.h"
#include "libalpa/kernels/cuda/attention_tiles.cuh"
#include "libalpa/kernels/cuda/block_reduce.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

/// d query of a tile of queries; writes their deltas too.
template <class T, int kWidth>
__global__ void query_gradient(AttentionExtents e, GradientOperands<T> in, float* deltas, T* dquery) {
  __shared__ VectorTile<kTileRows, kWidth> queries, doutputs;
  __shared__ VectorTile<kTileColumns, kWidth> columns;  // values and keys in turn
  __shared__ ScoreTile dscores;
  const QueryTile at(e, kTileRows);
  const std::int64_t row = at.first + own_row(), visible = seen_keys(e, in.position + row);
  const std::int64_t from = first_key(in.first_keys, e, at.head.batch, row);
  const bool exists = row < e.queries;
  load(queries, at.head.queries(e, in.query, at.first), e.width);
  load(doutputs, at.head.queries(e, in.doutput, at.first), e.width);
  __syncthreads();
  float delta = 0, log_sum = 0;
  if (exists) {
    const Vectors<const T> output = at.head.queries(e, in.output, row);
    for (int j = 0; own_column(j) < e.width; ++j)
      delta += doutputs[own_row()][own_column(j)] * widened(output.data[own_column(j)]);
    log_sum = in.log_sums[at.head.row_numbers(e) + row];
  }
  delta = reduce_lanes<kRowThreads>(delta, Sum{});
  if (exists && own_column(0) == 0) deltas[at.head.row_numbers(e) + row] = delta;
  VectorPart<kWidth> sums;
  if (in.resumes && exists) sums.resume(at.head.queries(e, dquery, row).data, e.width);
  const std::int64_t seen = seen_keys(e, in.position + at.first + kTileRows - 1);
  const std::int64_t begin =
      first_key(in.first_keys, e, at.head.batch, at.first) / kTileColumns * kTileColumns;
  for (std::int64_t first = begin; first < seen; first += kTileColumns) {
    float dweights[kColumnsPerThread], scores[kColumnsPerThread];
    __syncthreads();  // the keys before are used up
    load(columns, at.head.keys(e, in.value, first), e.width);
    __syncthreads();
    multiply(doutputs, columns, dweights);
    __syncthreads();
    load(columns, at.head.keys(e, in.key, first), e.width);
    __syncthreads();
    multiply(queries, columns, scores);
    for (int j = 0; j < kColumnsPerThread; ++j) {
      const bool is_seen = first + own_column(j) >= from && first + own_column(j) < visible;
      const float weight = is_seen ? expf(scores[j] * e.scale - log_sum) : 0.0f;
      dscores[own_row()][own_column(j)] = weight * (dweights[j] - delta) * e.scale;
    }
    __syncthreads();
    sums.add(dscores[own_row()], columns);
  }
  if (exists) sums.store(at.head.queries(e, dquery, row).data, e.width);
}

/// d key and d value of a tile of keys, from all queries of all heads that share them.
template <class T, int kWidth>
__global__ void key_gradient(AttentionExtents e, GradientOperands<T> in, const float* deltas, T* dkey,
                             T* dvalue) {
  __shared__ VectorTile<kTileRows, kWidth> keys, values;
  __shared__ VectorTile<kTileColumns, kWidth> columns;  // queries and d outputs in turn
  __shared__ ScoreTile weights;                         // and their gradients in turn
  KeyTile at(e, kTileRows);
  const std::int64_t row = at.first + own_row();
  load(keys, at.head.keys(e, in.key, at.first), e.width);
  load(values, at.head.keys(e, in.value, at.first), e.width);
  VectorPart<kWidth> dkeys, dvalues;
  if (in.resumes && row < e.keys) {
    dkeys.resume(at.head.keys(e, dkey, row).data, e.width);
    dvalues.resume(at.head.keys(e, dvalue, row).data, e.width);
  }
  const std::int64_t unseeing = in.first_to_see(e, at.first);
  const std::int64_t end = queries_that_begin_before(in.first_keys, e, at.head.batch, at.first + kTileRows);
  for (std::int64_t shared = 0; shared < e.share; ++shared) {
    at.head.query = at.head.key * e.share + shared;
    const std::int64_t numbers = at.head.row_numbers(e);
    for (std::int64_t first = unseeing / kTileColumns * kTileColumns; first < end; first += kTileColumns) {
      float own_weights[kColumnsPerThread], dweights[kColumnsPerThread];
      __syncthreads();  // what was in `columns` and `weights` is used up
      load(columns, at.head.queries(e, in.query, first), e.width);
      __syncthreads();
      multiply(keys, columns, own_weights);
      for (int j = 0; j < kColumnsPerThread; ++j) {
        const std::int64_t query = first + own_column(j);
        const bool is_seen = query < e.queries && row < seen_keys(e, in.position + query) &&
                             row >= first_key(in.first_keys, e, at.head.batch, query);
        own_weights[j] = is_seen ? expf(own_weights[j] * e.scale - in.log_sums[numbers + query]) : 0.0f;
        weights[own_row()][own_column(j)] = own_weights[j];
      }
      __syncthreads();
      load(columns, at.head.queries(e, in.doutput, first), e.width);
      __syncthreads();
      multiply(values, columns, dweights);
      dvalues.add(weights[own_row()], columns);
      __syncthreads();
      for (int j = 0; j < kColumnsPerThread; ++j) {
        const std::int64_t query = first + own_column(j);
        const float delta = query < e.queries ? deltas[numbers + query] : 0.0f;
        weights[own_row()][own_column(j)] = own_weights[j] * (dweights[j] - delta) * e.scale;
      }
      load(columns, at.head.queries(e, in.query, first), e.width);
      __syncthreads();
      dkeys.add(weights[own_row()], columns);
    }
  }
  if (row >= e.keys) return;
  dkeys.store(at.head.keys(e, dkey, row).data, e.width);
  dvalues.store(at.head.keys(e, dvalue, row).data, e.width);
}

template <class T, int kWidth>
std::unique_ptr<Kernel> gradient_kernel(const AttentionExtents& e) {
  return cuda_kernel([e](const KernelCall& call, cudaStream_t stream) {
    const GradientOperands<T> in(call, e);
    auto* delta = static_cast<float*>(call.workspace);  // one number per row
    launch(stream, QueryTile::blocks(e, kTileRows), kTileThreads, query_gradient<T, kWidth>, e, in, delta,
           call.result<T>(0));
    launch(stream, KeyTile::blocks(e, kTileRows), kTileThreads, key_gradient<T, kWidth>, e, in, delta,
           call.result<T>(1), call.result<T>(2));
  });
}

}  // namespace

std::unique_ptr<Kernel> attention_grad_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, shape.operands.size() > 6 ? "tttttfi->ttt" : "tttttf->ttt")) return nullptr;
  if (runs_on_tensor_cores(shape)) return attention_grad_on_tensor_cores(shape);
  const AttentionExtents e(shape.operands[1], shape.operands[2], shape.attributes);
  return for_float_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return for_width(e.width, [&](auto width) { return gradient_kernel<T, decltype(width)::value>(e); });
  });
}

}  // namespace alpa::ops
