#include "libalpa/base/tensor_type.h"

#include <algorithm>
#include <array>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

struct DTypeFacts {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<DTypeFacts, 4> kDTypes{{{"f32", 4}, {"bf16", 2}, {"f16", 2}, {"i32", 4}}};

const DTypeFacts& facts(DType t) { return kDTypes[static_cast<std::size_t>(t)]; }

}  // namespace

std::int64_t dtype_bytes(DType t) { return facts(t).bytes; }
std::string_view dtype_name(DType t) { return facts(t).name; }

DType dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  throw Error(ErrorKind::input, "unknown element type '" + std::string(name) + "'",
              "one of f32, bf16, f16, i32");
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (std::int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

std::int64_t byte_count(const TensorType& type) {
  return element_count(type.shape) * dtype_bytes(type.dtype);
}

std::int64_t buffer_bytes(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

std::string type_text(const TensorType& type) {
  return std::string(dtype_name(type.dtype)) + "[" + shape_text(type.shape) + "]";
}

}  // namespace alpa
