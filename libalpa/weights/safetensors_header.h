#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// One tensor of a safetensors file.
struct StoredTensor {
  std::string name;
  std::string dtype;  ///< as the format calls it: "F32", "BF16", "I64"
  Shape shape;
  std::int64_t begin = 0, end = 0;  ///< its bytes, counted from the end of the header
};

/// Longest header that is read, which is the format's own bound.
inline constexpr std::int64_t longest_safetensors_header = 100'000'000;

/// Whether a text is accepted as a tensor's name: 1 to 256 printable characters without blanks.
bool is_tensor_name(const std::string& text);

/// What a message may repeat of a text from outside: short and printable.
std::string shown(std::string text);

/// Reads the header of a safetensors file whose tensors have `data_bytes` together, and trusts nothing in it:
/// names are unique and printable, types known, each range is as long as shape and type say, and the ranges
/// follow each other without a gap to the end. Sorted by place. Throws Error(input) naming `file` and tensor.
std::vector<StoredTensor> parse_safetensors_header(std::string_view header, std::int64_t data_bytes,
                                                   const std::string& file);

/// The header of tensors that lie in this order, laid out as PyTorch has them; fills in their places.
std::string safetensors_header(std::vector<StoredTensor>& tensors);

}  // namespace alpa
