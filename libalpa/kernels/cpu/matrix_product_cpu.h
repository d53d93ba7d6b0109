#pragma once
#include <cstdint>

#include "libalpa/base/bfloat16.h"
#include "libalpa/kernels/contraction.h"

namespace alpa {

/// left is rows x sum, right sum x columns, the result rows x columns.
struct ProductExtents {
  std::int64_t rows, columns, sum;
};

struct MatrixFactor {
  MatrixLayout layout;
  const float* data;
};

struct Bfloat16Factor {
  MatrixLayout layout;
  const Bfloat16* data;
};

/// Row-major, rows `leading` elements apart.
struct ProductResult {
  float* data;
  std::int64_t leading;
};

/// result = left right + keep * result in f32. Inside an OpenMP region it runs on the calling thread alone.
///
/// Done by dnnl_sgemm, which takes memory in each call for one block per thread to pack operands (74 KB, some
/// MB for wide products). A prepared matmul primitive takes six small pieces in each call, on a scratchpad of
/// ours too, and is slower: all f32 products of a GPT step (6 x 384) take 3 % longer on one thread, 4 to 6 %
/// on two, those of weight gradients 6 to 9 % (oneDNN 2.6, AVX-512 EPYC).
void multiply(const ProductExtents&, const MatrixFactor& left, const MatrixFactor& right, float keep,
              const ProductResult&);

/// The same of bf16 matrices, where multiplies_bfloat16().
void multiply(const ProductExtents&, const Bfloat16Factor& left, const Bfloat16Factor& right, float keep,
              const ProductResult&);

/// Whether the processor has instructions for products of bf16 that are faster than those of f32.
bool multiplies_bfloat16();

/// The f32 product on all threads, each with a rectangle of the result; not from inside an OpenMP region.
void multiply_on_all_threads(const ProductExtents&, const MatrixFactor& left, const MatrixFactor& right,
                             float keep, const ProductResult&);

/// The parts that multiply_parts_of_sum() had best cut the sum into: one per thread where each is long and
/// the result small, as in gradients of 1 x 1 filters, and else 1, which is to do without. (A result that is
/// cut instead has each thread read much of both operands: 64 x 128 with a sum over 16384 takes 1.4 to 1.9
/// times as long on two threads.)
std::int64_t parts_of_sum(const ProductExtents&);

/// The f32 product on all threads, each with a part of the sum. `partial` has room for a result without gaps
/// from each part but the first.
void multiply_parts_of_sum(const ProductExtents&, const MatrixFactor& left, const MatrixFactor& right,
                           float keep, const ProductResult&, std::int64_t parts, float* partial);

}  // namespace alpa
