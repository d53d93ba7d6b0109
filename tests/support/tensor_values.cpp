#include "tests/support/tensor_values.h"

#include <cstring>

#include "libalpa/base/float_types.h"
#include "libalpa/base/philox.h"

namespace alpa {
namespace {

template <class T>
std::vector<std::byte> packed_as(const Values& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    if constexpr (std::is_same_v<T, std::int32_t>)
      element = static_cast<T>(values[i]);
    else
      element = from_float<T>(static_cast<float>(values[i]));
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
  return bytes;
}

double number(std::int32_t element) { return element; }
template <class T>
double number(T element) {
  return static_cast<double>(to_float(element));
}

template <class T>
Values unpacked_as(const std::vector<std::byte>& bytes) {
  Values values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = number(element);
  }
  return values;
}

}  // namespace

std::vector<std::byte> packed(const Values& values, DType dtype) {
  if (dtype == DType::i32) return packed_as<std::int32_t>(values);
  return for_float_type(dtype, [&](auto zero) { return packed_as<decltype(zero)>(values); });
}

Values unpacked(const std::vector<std::byte>& bytes, DType dtype) {
  if (dtype == DType::i32) return unpacked_as<std::int32_t>(bytes);
  return for_float_type(dtype, [&](auto zero) { return unpacked_as<decltype(zero)>(bytes); });
}

Values rounded(const Values& values, DType dtype) { return unpacked(packed(values, dtype), dtype); }

Values uniform_values(std::int64_t count, double low, double high, std::uint64_t seed) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(
        low + (high - low) * static_cast<double>(philox_uniform_at(seed, 0, static_cast<std::uint64_t>(i))));
  return values;
}

Values slice(const Values& tensor, const Shape& whole, const Shape& origin, const Shape& extent) {
  Values values(static_cast<std::size_t>(element_count(extent)));
  for_box(whole, origin, extent, [&](std::size_t from, std::size_t to) { values[to] = tensor[from]; });
  return values;
}

}  // namespace alpa
