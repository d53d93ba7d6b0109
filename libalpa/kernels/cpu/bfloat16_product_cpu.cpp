#include "libalpa/kernels/cpu/bfloat16_product_cpu.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "libalpa/kernels/cpu/dnnl_status.h"
#include "libalpa/kernels/cpu/host_threads.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/cpu/widened_product_cpu.h"

namespace alpa {
namespace {

using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;

dnnl::memory::desc matrix_desc(const MatrixProduct& product, std::int64_t ContractionLoop::*batch_stride,
                               std::int64_t rows, std::int64_t columns, const MatrixLayout& layout,
                               Type type) {
  Dims extents, strides;
  for (const ContractionLoop& loop : product.batch) {
    extents.push_back(loop.size);
    strides.push_back(loop.*batch_stride);
  }
  extents.insert(extents.end(), {rows, columns});
  if (layout.transposed)
    strides.insert(strides.end(), {1, layout.leading});
  else
    strides.insert(strides.end(), {layout.leading, 1});
  return {extents, type, strides};
}

class DnnlProduct final : public Bfloat16Product {
 public:
  /// Throws dnnl::error where oneDNN has no such primitive.
  DnnlProduct(const MatrixProduct& product, DType result)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), threads_(host_threads()) {
    const Type type = result == DType::f32 ? Type::f32 : Type::bf16;
    const auto left =
        matrix_desc(product, &ContractionLoop::left, product.rows, product.sum, product.left, Type::bf16);
    const auto right = matrix_desc(product, &ContractionLoop::right, product.sum, product.columns,
                                   product.right, Type::bf16);
    const auto to = matrix_desc(product, &ContractionLoop::result, product.rows, product.columns,
                                {false, product.result_leading}, type);
    left_ = dnnl::memory(left, engine_, nullptr);
    right_ = dnnl::memory(right, engine_, nullptr);
    to_ = dnnl::memory(to, engine_, nullptr);
    const dnnl::matmul::desc operation(left, right, to);
    std::size_t scratch_bytes = 0;
    for (const bool accumulate : {false, true}) {
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      if (accumulate) {
        dnnl::post_ops add;
        add.append_sum(1.0f);
        attributes.set_post_ops(add);
      }
      const dnnl::matmul::primitive_desc description(operation, attributes, engine_);
      fast_ = fast_ && !std::string_view(description.impl_info_str()).starts_with("ref");
      scratch_bytes = std::max(scratch_bytes, description.scratchpad_desc().get_size());
      products_[accumulate] = dnnl::matmul(description);
      scratch_desc_[accumulate] = description.scratchpad_desc();
    }
    scratch_.resize(scratch_bytes + kAlignment);
    void* start = scratch_.data();
    std::size_t space = scratch_.size();
    std::align(kAlignment, scratch_bytes, start, space);
    for (const std::size_t i : {0, 1}) scratch_memory_[i] = dnnl::memory(scratch_desc_[i], engine_, start);
  }

  bool is_fast() const { return fast_; }

  void run(const void* left, const void* right, void* result, bool accumulate) override {
    const HostThreads hold(threads_);  // those the primitive was made for
    check(dnnl_memory_set_data_handle(left_.get(), const_cast<void*>(left)), "take a matrix");
    check(dnnl_memory_set_data_handle(right_.get(), const_cast<void*>(right)), "take a matrix");
    check(dnnl_memory_set_data_handle(to_.get(), result), "take a matrix");
    const std::array<dnnl_exec_arg_t, 4> arguments{
        {{DNNL_ARG_SRC, left_.get()},
         {DNNL_ARG_WEIGHTS, right_.get()},
         {DNNL_ARG_DST, to_.get()},
         {DNNL_ARG_SCRATCHPAD, scratch_memory_[accumulate].get()}}};
    check(dnnl_primitive_execute(products_[accumulate].get(), stream_.get(), arguments.size(),
                                 arguments.data()),
          "multiply bf16 matrices");
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  dnnl::engine engine_;
  dnnl::stream stream_;
  int threads_;
  bool fast_ = true;
  dnnl::memory left_, right_, to_;
  std::array<dnnl::matmul, 2> products_;  ///< overwriting, accumulating
  std::array<dnnl::memory::desc, 2> scratch_desc_;
  std::array<dnnl::memory, 2> scratch_memory_;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::unique_ptr<Bfloat16Product> make_bfloat16_product(const MatrixProduct& product, DType result) {
  if (!multiplies_bfloat16()) return make_widened_product(product, result);
  try {
    auto prepared = std::make_unique<DnnlProduct>(product, result);
    if (prepared->is_fast()) return prepared;
  } catch (const dnnl::error& error) {
    // No primitive for these strides.
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
  }
  return make_widened_product(product, result);
}

}  // namespace alpa
