#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace alpa {

enum class DType : std::uint8_t { f32, bf16, f16, i32 };

std::int64_t dtype_bytes(DType);
std::string_view dtype_name(DType);  ///< "f32", "bf16", "f16", "i32"

/// Throws Error(input) naming the known types.
DType dtype_from_name(std::string_view);

/// Extents of a tensor in elements, outermost first; {} is a scalar with one element.
using Shape = std::vector<std::int64_t>;

std::int64_t element_count(const Shape&);
std::string shape_text(const Shape&);  ///< "2x256x384", "scalar"

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

std::int64_t byte_count(const TensorType&);

/// Bytes to which buffers, and memory of devices and of the host, are aligned at least.
inline constexpr std::int64_t kAlignment = 256;

/// What memory a buffer takes for so many bytes, or for a tensor: a multiple of kAlignment, never none.
std::int64_t buffer_bytes(std::int64_t bytes);
inline std::int64_t buffer_bytes(const TensorType& type) { return buffer_bytes(byte_count(type)); }

std::string type_text(const TensorType&);  ///< "f32[2x256x384]"

}  // namespace alpa
