#include "tests/support/tensor_values.h"

#include <cstring>

#include "libalpa/base/bfloat16.h"
#include "libalpa/base/philox.h"

namespace alpa {
namespace {

template <class T, class Convert>
std::vector<std::byte> packed_as(const Values& values, Convert convert) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T element = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
  return bytes;
}

template <class T, class Convert>
Values unpacked_as(const std::vector<std::byte>& bytes, Convert convert) {
  Values values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(convert(element));
  }
  return values;
}

}  // namespace

std::vector<std::byte> packed(const Values& values, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return packed_as<float>(values, [](double x) { return static_cast<float>(x); });
    case DType::bf16:
      return packed_as<Bfloat16>(values, [](double x) { return to_bfloat16(static_cast<float>(x)); });
    case DType::i32:
      break;
  }
  return packed_as<std::int32_t>(values, [](double x) { return static_cast<std::int32_t>(x); });
}

Values unpacked(const std::vector<std::byte>& bytes, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return unpacked_as<float>(bytes, [](float x) { return x; });
    case DType::bf16:
      return unpacked_as<Bfloat16>(bytes, [](Bfloat16 x) { return to_float(x); });
    case DType::i32:
      break;
  }
  return unpacked_as<std::int32_t>(bytes, [](std::int32_t x) { return x; });
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
