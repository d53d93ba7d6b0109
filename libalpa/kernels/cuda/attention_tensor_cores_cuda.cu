#include <limits>

#include "libalpa/kernels/cuda/attention_matrices.cuh"
#include "libalpa/kernels/cuda/attention_tensor_cores.h"
#include "libalpa/kernels/cuda/block_reduce.cuh"

namespace alpa {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity(), kLog2e = 1.44269504f, kLn2 = 0.693147181f;

/// Exponentials of a row's scores, with a running maximum and sum; in powers of two, which is what the
/// hardware has.
struct SoftmaxRows {
  float maximum[2] = {kLowest, kLowest}, sum[2] = {};  ///< sums: of this lane's columns
  int from[2], visible[2];                             ///< the columns that a row sees: [from, visible)

  /// Makes weights of scores, which are of columns from `first` on; `factors`: what earlier ones are
  /// multiplied by.
  template <int kTiles>
  __device__ void weigh(float (&scores)[kTiles][4], int first, float scale, float (&factors)[2]) {
    float highest[2] = {maximum[0], maximum[1]};
    for (int n = 0; n < kTiles; ++n)
      for (int c = 0; c < 4; ++c) {
        const int column = first + n * 8 + column_of_lane() + c % 2;
        const bool is_seen = column >= from[c / 2] && column < visible[c / 2];
        scores[n][c] = is_seen ? scores[n][c] * scale : kLowest;
        highest[c / 2] = Maximum{}(highest[c / 2], scores[n][c]);
      }
    for (int r = 0; r < 2; ++r) {
      highest[r] = reduce_lanes<kColumnLanes>(highest[r], Maximum{});
      factors[r] = exp2f(maximum[r] - finite(highest[r]));
      maximum[r] = highest[r];
      sum[r] *= factors[r];
    }
    for (int n = 0; n < kTiles; ++n)
      for (int c = 0; c < 4; ++c) {
        scores[n][c] = exp2f(scores[n][c] - finite(maximum[c / 2]));
        sum[c / 2] += scores[n][c];
      }
  }

 private:
  /// A row that sees nothing yet has no maximum; its exponentials are 0 all the same.
  __device__ static float finite(float maximum) { return maximum == kLowest ? 0.0f : maximum; }
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kBlockThreads)
    attend_tiles(AttentionExtents e, FirstKeys first_keys, std::int64_t position, bool resumes,
                 const T* query, const T* key, const T* value, T* output, float* log_sums) {
  constexpr int kColumns = 64;
  __shared__ SharedRows<T, kBlockRows, kWidth> keys;  // the queries first
  __shared__ SharedRows<T, kColumns, kWidth> values;
  const QueryTile at(e, kBlockRows);
  keys.template load<kBlockRows>(0, at.head.queries(e, query, at.first), e.width);
  close_copies();
  wait_for_copies<0>();
  __syncthreads();
  RowVectors<T, kWidth> queries;
  queries.take(keys, 0);
  __syncthreads();
  const std::int64_t seen = seen_keys(e, position + at.first + kBlockRows - 1);
  const std::int64_t first_seen = first_key(first_keys, e, at.head.batch, at.first);
  const bool sees_any = first_seen < seen;
  const std::int64_t begin = sees_any ? first_seen / kColumns * kColumns : 0, end = sees_any ? seen : 0;
  keys.template load<kColumns>(0, at.head.keys(e, key, begin), e.width);
  close_copies();

  SoftmaxRows rows;
  RowSums<T, kWidth> sums;
  if (resumes) sums.resume(at.head.queries(e, static_cast<const T*>(output), at.first), e.width);
  for (int r = 0; r < 2; ++r) {
    const std::int64_t row = at.first + row_of_lane() + r * 8;
    rows.visible[r] = static_cast<int>(seen_keys(e, position + row));
    rows.from[r] = static_cast<int>(first_key(first_keys, e, at.head.batch, row));
    if (resumes && row < e.queries) {
      rows.maximum[r] = log_sums[at.head.row_numbers(e) + row] * kLog2e;
      rows.sum[r] = rows.maximum[r] > kLowest && column_of_lane() == 0 ? 1.0f : 0.0f;
    }
  }
  for (std::int64_t first = begin; first < end; first += kColumns) {
    values.template load<kColumns>(0, at.head.keys(e, value, first), e.width);
    close_copies();
    wait_for_copies<1>();
    __syncthreads();  // the keys are there
    float scores[kColumns / 8][4], factors[2];
    queries.multiply(keys, 0, scores);
    __syncthreads();  // and used up
    if (first + kColumns < end)
      keys.template load<kColumns>(0, at.head.keys(e, key, first + kColumns), e.width);
    close_copies();
    rows.weigh(scores, static_cast<int>(first), e.scale * kLog2e, factors);
    sums.scale(factors);
    wait_for_copies<1>();
    __syncthreads();  // the values are there
    sums.add(scores, values, 0);
    __syncthreads();  // and used up
  }

  float factors[2];
  for (int r = 0; r < 2; ++r) {
    const std::int64_t row = at.first + row_of_lane() + r * 8;
    const float sum = reduce_lanes<kColumnLanes>(rows.sum[r], Sum{});
    factors[r] = sum > 0 ? 1.0f / sum : 0.0f;
    if (row < e.queries && column_of_lane() == 0)
      log_sums[at.head.row_numbers(e) + row] = sum > 0 ? rows.maximum[r] * kLn2 + logf(sum) : kLowest;
  }
  sums.scale(factors);
  sums.store(at.head.queries(e, output, at.first), e.width);
}

/// deltas [batch, heads, queries]: products of the rows of d output with those of the output, a warp for
/// each.
template <class T>
__global__ void row_products(AttentionExtents e, const T* doutput, const T* output, float* deltas) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= e.batch * e.queries * e.heads) return;
  float sum = 0;
  for (std::int64_t i = row * e.width + own_lane(); i < (row + 1) * e.width; i += 32)
    sum += widened(doutput[i]) * widened(output[i]);
  sum = reduce_lanes<32>(sum, Sum{});
  const std::int64_t query = row / e.heads % e.queries, batch = row / e.heads / e.queries;
  if (own_lane() == 0) deltas[(batch * e.heads + row % e.heads) * e.queries + query] = sum;
}

/// d query of a tile of queries, from all keys they see; or d key and d value of a tile of keys, from all
/// queries that see them. So many blocks share a multiprocessor that few of their sums leave the registers.
template <class T, int kWidth, bool kOfQuery>
__global__ void __launch_bounds__(kBlockThreads, kWidth > 64 ? 2 : 3)
    gradient(AttentionExtents e, GradientOperands<T> in, const float* deltas, T* result, T* dvalue) {
  constexpr int kColumns = kWidth > 64 ? 32 : 64, kTiles = kColumns / 8;
  // Two stages, one filled while the other is used: keys and values of some columns, or queries and d
  // outputs.
  __shared__ SharedRows<T, 4 * kColumns, kWidth> shared;
  static_assert(4 * kColumns >= 2 * kBlockRows, "the vectors of the rows come first");
  Head head;
  std::int64_t first, begin, end;  // of rows, and of columns
  if constexpr (kOfQuery) {
    const QueryTile at(e, kBlockRows);
    head = at.head, first = at.first, end = seen_keys(e, in.position + first + kBlockRows - 1);
    begin = first_key(in.first_keys, e, head.batch, first) / kColumns * kColumns;
  } else {
    const KeyTile at(e, kBlockRows);
    head = at.head, first = at.first, begin = in.first_to_see(e, first) / kColumns * kColumns,
    end = queries_that_begin_before(in.first_keys, e, head.batch, first + kBlockRows);
  }
  if constexpr (kOfQuery) {
    shared.template load<kBlockRows>(0, head.queries(e, in.query, first), e.width);
    shared.template load<kBlockRows>(kBlockRows, head.queries(e, in.doutput, first), e.width);
  } else {
    shared.template load<kBlockRows>(0, head.keys(e, in.key, first), e.width);
    shared.template load<kBlockRows>(kBlockRows, head.keys(e, in.value, first), e.width);
  }
  close_copies();
  wait_for_copies<0>();
  __syncthreads();
  RowVectors<T, kWidth> rows, other_rows;
  rows.take(shared, 0);
  other_rows.take(shared, kBlockRows);
  __syncthreads();

  RowSums<T, kWidth> sums, value_sums;
  const Vectors<T> results = kOfQuery ? head.queries(e, result, first) : head.keys(e, result, first);
  if (in.resumes) sums.resume({results.data, results.stride, results.count}, e.width);
  if constexpr (!kOfQuery)
    if (in.resumes) value_sums.resume(head.keys(e, static_cast<const T*>(dvalue), first), e.width);
  // What scores become weights by: of the rows where these are queries, else of the columns.
  float log_sum[2], delta[2];
  int from[2], visible[2];
  if constexpr (kOfQuery)
    for (int r = 0; r < 2; ++r) {
      const std::int64_t query = first + row_of_lane() + r * 8, number = head.row_numbers(e) + query;
      visible[r] = query < e.queries ? static_cast<int>(seen_keys(e, in.position + query)) : 0;
      from[r] = static_cast<int>(first_key(in.first_keys, e, head.batch, query));
      log_sum[r] = query < e.queries ? in.log_sums[number] * kLog2e : 0.0f;
      delta[r] = query < e.queries ? deltas[number] : 0.0f;
    }

  const std::int64_t tiles = end > begin ? (end - begin + kColumns - 1) / kColumns : 0;
  const std::int64_t steps = kOfQuery ? tiles : tiles * e.share;
  const auto load_columns = [&](std::int64_t step) {
    const std::int64_t column = begin + step % tiles * kColumns;
    const int stage = static_cast<int>(step % 2) * 2 * kColumns;
    if constexpr (kOfQuery) {
      shared.template load<kColumns>(stage, head.keys(e, in.key, column), e.width);
      shared.template load<kColumns>(stage + kColumns, head.keys(e, in.value, column), e.width);
    } else {
      const Head from{head.batch, head.key * e.share + step / tiles, head.key};
      shared.template load<kColumns>(stage, from.queries(e, in.query, column), e.width);
      shared.template load<kColumns>(stage + kColumns, from.queries(e, in.doutput, column), e.width);
    }
  };
  if (steps > 0) load_columns(0);
  close_copies();
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step + 1 < steps) load_columns(step + 1);
    close_copies();
    wait_for_copies<1>();
    __syncthreads();  // this step's columns are there
    const int stage = static_cast<int>(step % 2) * 2 * kColumns;
    const std::int64_t column = begin + step % tiles * kColumns;
    float weights[kTiles][4];
    rows.multiply(shared, stage, weights);
    float column_delta[kTiles][2];
    for (int n = 0; n < kTiles; ++n)
      for (int j = 0; j < 2; ++j) {
        const std::int64_t at = column + n * 8 + column_of_lane() + j;
        int begins_at = 0, seen_from = 0;  // keys that this query sees: [begins_at, seen_from)
        float column_sum = 0;
        if constexpr (!kOfQuery) {
          const Head from{head.batch, head.key * e.share + step / tiles, head.key};
          const std::int64_t number = from.row_numbers(e) + at;
          seen_from = at < e.queries ? static_cast<int>(seen_keys(e, in.position + at)) : 0;
          begins_at = static_cast<int>(first_key(in.first_keys, e, head.batch, at));
          column_sum = at < e.queries ? in.log_sums[number] * kLog2e : 0.0f;
          column_delta[n][j] = at < e.queries ? deltas[number] : 0.0f;
        }
        for (int r = 0; r < 2; ++r) {
          const std::int64_t key = first + row_of_lane() + r * 8;
          const bool is_seen =
              kOfQuery ? at >= from[r] && at < visible[r] : key >= begins_at && key < seen_from;
          float& weight = weights[n][2 * r + j];
          weight = is_seen ? exp2f(weight * (e.scale * kLog2e) - (kOfQuery ? log_sum[r] : column_sum)) : 0.0f;
        }
      }
    if constexpr (!kOfQuery) value_sums.add(weights, shared, stage + kColumns);
    float dweights[kTiles][4];
    other_rows.multiply(shared, stage + kColumns, dweights);
    for (int n = 0; n < kTiles; ++n)
      for (int c = 0; c < 4; ++c)
        weights[n][c] *= (dweights[n][c] - (kOfQuery ? delta[c / 2] : column_delta[n][c % 2])) * e.scale;
    sums.add(weights, shared, stage);
    __syncthreads();  // and used up
  }
  sums.store(results, e.width);
  if constexpr (!kOfQuery) value_sums.store(head.keys(e, dvalue, first), e.width);
}

/// Calls body(T{}, std::integral_constant of the width) for the type and the width of heads.
template <class Body>
std::unique_ptr<Kernel> for_type_and_width(const TensorType& query, Body body) {
  return for_width(query.shape[3], [&](auto width) {
    return query.dtype == DType::bf16 ? body(Bfloat16{}, width) : body(Float16{}, width);
  });
}

}  // namespace

bool runs_on_tensor_cores(const KernelShape& shape) {
  const DType dtype = shape.operands[0].dtype;
  return dtype == DType::bf16 || dtype == DType::f16;
}

std::unique_ptr<Kernel> attention_on_tensor_cores(const KernelShape& shape) {
  const AttentionExtents e(shape.operands[0], shape.operands[1], shape.attributes);
  return for_type_and_width(shape.operands[0], [&](auto zero, auto width) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return cuda_kernel([e](const KernelCall& call, cudaStream_t stream) {
      launch(stream, QueryTile::blocks(e, kBlockRows), kBlockThreads, attend_tiles<T, decltype(width)::value>,
             e, FirstKeys(call, 3, 1, e), query_position(call.operands[0], call.operands[1]), call.accumulate,
             call.operand<T>(0), call.operand<T>(1), call.operand<T>(2), call.result<T>(0),
             call.result<float>(1));
    });
  });
}

std::unique_ptr<Kernel> attention_grad_on_tensor_cores(const KernelShape& shape) {
  const AttentionExtents e(shape.operands[1], shape.operands[2], shape.attributes);
  return for_type_and_width(shape.operands[0], [&](auto zero, auto width) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return cuda_kernel([e](const KernelCall& call, cudaStream_t stream) {
      constexpr int kWidth = decltype(width)::value;
      const GradientOperands<T> in(call, e);
      auto* deltas = static_cast<float*>(call.workspace);  // one number per row
      launch(stream, blocks_of((e.batch * e.queries * e.heads * 32 + kThreads - 1) / kThreads), kThreads,
             row_products<T>, e, in.doutput, in.output, deltas);
      launch(stream, QueryTile::blocks(e, kBlockRows), kBlockThreads, gradient<T, kWidth, true>, e, in,
             deltas, call.result<T>(0), static_cast<T*>(nullptr));
      launch(stream, KeyTile::blocks(e, kBlockRows), kBlockThreads, gradient<T, kWidth, false>, e, in, deltas,
             call.result<T>(1), call.result<T>(2));
    });
  });
}

}  // namespace alpa
