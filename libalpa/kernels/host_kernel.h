#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "libalpa/base/float_types.h"
#include "libalpa/kernels/kernel.h"

namespace alpa {

/// The arguments of one Kernel::run on host memory.
struct KernelCall {
  std::span<const Tile> operands, results;
  void* workspace;
  bool accumulate;
  const RunPoint& point;

  template <class T>
  const T* operand(std::size_t index) const {
    return static_cast<const T*>(operands[index].data);
  }
  template <class T>
  T* result(std::size_t index) const {
    return static_cast<T*>(results[index].data);
  }
};

/// Global index of a tile's first element in that dimension.
inline std::int64_t origin_of(const Tile& tile, std::size_t dimension) {
  return tile.origin.empty() ? 0 : tile.origin[dimension];
}

/// A kernel that calls body(KernelCall).
template <class Body>
class HostKernel final : public Kernel {
 public:
  explicit HostKernel(Body body) : body_(std::move(body)) {}
  void run(Stream&, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
           bool accumulate, const RunPoint& point) override {
    body_(KernelCall{operands, results, workspace, accumulate, point});
  }

 private:
  Body body_;
};

template <class Body>
std::unique_ptr<Kernel> host_kernel(Body body) {
  return std::make_unique<HostKernel<Body>>(std::move(body));
}

/// Whether the element types are those of a pattern as "tti->tf": t is the type of the first t, any of the
/// floats; f is f32, i is i32, and a is t or f32 (a result that may be summed in f32).
bool types_match(const KernelShape&, std::string_view pattern);

/// " f32[2x3] -> bf16[2]": the types a kernel is wanted for, for the error where there is none.
std::string types_text(const KernelShape&);

/// body(T{}) with T = float or Bfloat16, the element type of operand 0: CPUs compute in no others.
template <class Body>
std::unique_ptr<Kernel> for_type(DType dtype, Body body) {
  assert(dtype == DType::f32 || dtype == DType::bf16);
  return dtype == DType::f32 ? body(float{}) : body(Bfloat16{});
}

/// Rows and width of a tensor seen as a matrix whose rows are its last dimension.
struct Rows {
  std::int64_t count, width;
};
inline Rows rows_of(const TensorType& type) {
  const std::int64_t width = type.shape.empty() ? 1 : type.shape.back();
  return {width == 0 ? 0 : element_count(type.shape) / width, width};
}

/// Columns of a tile [..., v], from its first on, that count: all with `words` 0, else those before that
/// column of the whole tensor, which padding follows.
inline std::int64_t columns_of_words(const Tile& tile, const TensorType& type, std::int64_t words) {
  if (words == 0) return type.shape.back();
  return std::clamp<std::int64_t>(words - origin_of(tile, type.shape.size() - 1), 0, type.shape.back());
}

}  // namespace alpa
