#pragma once
#include <cstdint>
#include <memory>

#include "libalpa/base/tensor_type.h"
#include "libalpa/kernels/contraction.h"

namespace alpa {

/// c = alpha * a b + beta * c in f32 on row-major matrices; leading dimensions in elements. Inside an OpenMP
/// region it runs on the calling thread alone.
void multiply(const MatrixLayout& a, const MatrixLayout& b, std::int64_t rows, std::int64_t columns,
              std::int64_t sum, float alpha, const float* a_data, const float* b_data, float beta,
              float* c_data, std::int64_t c_leading);

/// The same on all threads, each with a rectangle of the result; not from inside an OpenMP region.
void multiply_on_all_threads(const MatrixLayout& a, const MatrixLayout& b, std::int64_t rows,
                             std::int64_t columns, std::int64_t sum, const float* a_data, const float* b_data,
                             float beta, float* c_data, std::int64_t c_leading);

/// A prepared product of bf16 matrices with a result in bf16 or f32.
class Bfloat16Product {
 public:
  virtual ~Bfloat16Product() = default;
  virtual void run(const void* left, const void* right, void* result, bool accumulate) = 0;
};

/// Null where the processor has no fast way to do it.
std::unique_ptr<Bfloat16Product> make_bfloat16_product(const MatrixProduct&, DType result);

}  // namespace alpa
