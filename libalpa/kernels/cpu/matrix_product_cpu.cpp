#include "libalpa/kernels/cpu/matrix_product_cpu.h"

#include <cpuid.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include "libalpa/kernels/cpu/dnnl_status.h"
#include "libalpa/kernels/cpu/host_loops.h"

// The bf16 twin of dnnl_sgemm. The library exports it, its headers leave it out.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n,
                                               dnnl_dim_t k, float alpha, const std::uint16_t* a,
                                               dnnl_dim_t lda, const std::uint16_t* b, dnnl_dim_t ldb,
                                               float beta, float* c, dnnl_dim_t ldc);

namespace alpa {
namespace {

void multiply_at_once(const ProductExtents& e, const MatrixFactor& left, const MatrixFactor& right,
                      float keep, const ProductResult& result) {
  check(dnnl_sgemm(left.layout.transposed ? 'T' : 'N', right.layout.transposed ? 'T' : 'N', e.rows, e.columns,
                   e.sum, 1.0f, left.data, left.layout.leading, right.data, right.layout.leading, keep,
                   result.data, result.leading),
        "multiply f32 matrices");
}

}  // namespace

void multiply(const ProductExtents& e, const MatrixFactor& left, const MatrixFactor& right, float keep,
              const ProductResult& result) {
  // What one thread sums over a transposed left operand, as in gradients of weights, goes in steps of 512:
  // 1536 x 384 with a sum over 2048 then runs at 145 GFLOP/s in place of 124, 384 x 1536 at 144 in place of
  // 134, and no other shape tried is slower by more than a hundredth (oneDNN 2.6, Xeon with AVX-512).
  constexpr std::int64_t step = 512;
  if (!left.layout.transposed || e.sum <= step || (host_threads() > 1 && !omp_in_parallel()))
    return multiply_at_once(e, left, right, keep, result);
  for (std::int64_t begin = 0; begin < e.sum; begin += step)
    multiply_at_once(
        {e.rows, e.columns, std::min(step, e.sum - begin)},
        {left.layout, left.data + begin * left.layout.leading},
        {right.layout, right.data + begin * (right.layout.transposed ? 1 : right.layout.leading)},
        begin == 0 ? keep : 1.0f, result);
}

void multiply(const ProductExtents& e, const Bfloat16Factor& left, const Bfloat16Factor& right, float keep,
              const ProductResult& result) {
  check(dnnl_gemm_bf16bf16f32(left.layout.transposed ? 'T' : 'N', right.layout.transposed ? 'T' : 'N', e.rows,
                              e.columns, e.sum, 1.0f, &left.data->bits, left.layout.leading,
                              &right.data->bits, right.layout.leading, keep, result.data, result.leading),
        "multiply bf16 matrices");
}

namespace {

/// Intel's processors since Sapphire Rapids are to multiply bf16 with AMX: a vdpbf16ps of AVX-512 takes them
/// two cycles, in which they do four vfmadd231ps, with twice as many multiplications. Many virtual machines
/// hide AMX.
bool has_slow_dot_products() {
  unsigned largest = 0, vendor[3] = {}, version = 0, other[3];
  if (!__get_cpuid(0, &largest, &vendor[0], &vendor[2], &vendor[1]) ||
      std::memcmp(vendor, "GenuineIntel", 12))
    return false;
  __get_cpuid(1, &version, &other[0], &other[1], &other[2]);
  const unsigned family = version >> 8 & 0xf, model = (version >> 4 & 0xf) | (version >> 12 & 0xf0);
  constexpr unsigned sapphire_rapids = 0x8f, emerald_rapids = 0xcf, granite_rapids[] = {0xad, 0xae};
  return family == 6 && (model == sapphire_rapids || model == emerald_rapids || model == granite_rapids[0] ||
                         model == granite_rapids[1]);
}

}  // namespace

bool multiplies_bfloat16() {
  // Each set of instructions has the bits of those that it includes.
  const auto has = [isa = dnnl_get_effective_cpu_isa()](dnnl_cpu_isa_t set) { return (isa & set) == set; };
  static const bool slow = has_slow_dot_products();
  return has(slow ? dnnl_cpu_isa_avx512_core_amx : dnnl_cpu_isa_avx512_core_bf16);
}

namespace {

/// How many parts each side of the result is cut into.
struct Grid {
  std::int64_t rows = 1, columns = 1;
};

/// One rectangle per thread, as near to squares as can be: each thread then reads the least of both operands.
Grid grid_for(std::int64_t rows, std::int64_t columns, std::int64_t threads) {
  Grid best{threads, 1};
  const auto border = [&](const Grid& grid) { return rows / grid.rows + columns / grid.columns; };
  for (std::int64_t across = 2; across <= threads; ++across)
    if (const Grid grid{threads / across, across}; threads % across == 0 && border(grid) < border(best))
      best = grid;
  return best;
}

/// Part `index` of `parts` of [0, extent), in whole blocks of oneDNN's inner kernels.
struct Stretch {
  std::int64_t begin, end;

  Stretch(std::int64_t extent, std::int64_t parts, std::int64_t index, std::int64_t block) {
    const std::int64_t blocks = (extent + block - 1) / block;
    begin = std::min(extent, blocks * index / parts * block);
    end = std::min(extent, blocks * (index + 1) / parts * block);
  }
};

}  // namespace

void multiply_on_all_threads(const ProductExtents& e, const MatrixFactor& left, const MatrixFactor& right,
                             float keep, const ProductResult& result) {
  constexpr std::int64_t row_block = 8, column_block = 48;
  const std::int64_t threads = host_threads();
  const bool is_small = 2 * e.rows * e.columns * e.sum < 2 * kFlopGrain;
  // oneDNN also splits the sum, which a small result of long sums needs.
  const bool few_blocks = e.rows * e.columns < 4 * threads * row_block * column_block;
  if (threads == 1 || is_small || few_blocks) {
    const HostThreads hold(is_small ? 1 : static_cast<int>(threads));
    multiply(e, left, right, keep, result);
    return;
  }
  const Grid grid = grid_for(e.rows, e.columns, threads);
#pragma omp parallel for schedule(static)
  for (std::int64_t t = 0; t < threads; ++t) {
    const Stretch r(e.rows, grid.rows, t / grid.columns, row_block),
        c(e.columns, grid.columns, t % grid.columns, column_block);
    if (r.begin == r.end || c.begin == c.end) continue;
    const MatrixLayout &a = left.layout, &b = right.layout;
    multiply({r.end - r.begin, c.end - c.begin, e.sum},
             {a, left.data + r.begin * (a.transposed ? 1 : a.leading)},
             {b, right.data + c.begin * (b.transposed ? b.leading : 1)}, keep,
             {result.data + r.begin * result.leading + c.begin, result.leading});
  }
}

std::int64_t parts_of_sum(const ProductExtents& e) {
  constexpr std::int64_t long_part = 2048, small_result = 256 * 256;
  const std::int64_t threads = host_threads();
  return e.sum >= threads * long_part && e.rows * e.columns <= small_result ? threads : 1;
}

void multiply_parts_of_sum(const ProductExtents& e, const MatrixFactor& left, const MatrixFactor& right,
                           float keep, const ProductResult& result, std::int64_t parts, float* partial) {
  const std::int64_t elements = e.rows * e.columns;
#pragma omp parallel for schedule(static)
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = e.sum * part / parts, end = e.sum * (part + 1) / parts;
    multiply({e.rows, e.columns, end - begin},
             {left.layout, left.data + begin * (left.layout.transposed ? left.layout.leading : 1)},
             {right.layout, right.data + begin * (right.layout.transposed ? 1 : right.layout.leading)},
             part == 0 ? keep : 0.0f,
             part == 0 ? result : ProductResult{partial + (part - 1) * elements, e.columns});
  }
  for_ranges(e.rows, row_grain(e.columns * parts), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t part = 1; part < parts; ++part) {
        float* to = result.data + row * result.leading;
        const float* from = partial + (part - 1) * elements + row * e.columns;
#pragma omp simd
        for (std::int64_t c = 0; c < e.columns; ++c) to[c] += from[c];
      }
  });
}

}  // namespace alpa
