#pragma once
#include <cassert>
#include <type_traits>

#include "libalpa/base/bfloat16.h"
#include "libalpa/base/float16.h"
#include "libalpa/base/tensor_type.h"

namespace alpa {

/// An f32 as it is stored: rounded to nearest, ties to even.
template <class T>
constexpr T from_float(float value) {
  if constexpr (std::is_same_v<T, Bfloat16>)
    return to_bfloat16(value);
  else if constexpr (std::is_same_v<T, Float16>)
    return to_float16(value);
  else
    return value;
}

/// body(T{}) with the type that elements of that type, which are no integers, have in host memory.
template <class Body>
auto for_float_type(DType dtype, Body body) {
  assert(dtype != DType::i32);
  if (dtype == DType::bf16) return body(Bfloat16{});
  if (dtype == DType::f16) return body(Float16{});
  return body(float{});
}

}  // namespace alpa
