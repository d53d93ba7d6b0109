#include "libalpa/dataset/packed_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <utility>

namespace alpa {
namespace {

template <class Packed>
void unpack(const InputFile& file, std::int64_t offset, std::span<std::int32_t> into) {
  std::array<Packed, 4096> packed;  // not on the heap: batches are read between steps
  while (!into.empty()) {
    const std::size_t count = std::min(packed.size(), into.size());
    file.read(offset, packed.data(), count * sizeof(Packed));
    for (std::size_t i = 0; i < count; ++i)
      into[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(
          packed[i], std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
    offset += static_cast<std::int64_t>(count * sizeof(Packed));
    into = into.subspan(count);
  }
}

}  // namespace

std::int64_t packed_bytes(PackedType type) {
  switch (type) {
    case PackedType::u8:
    case PackedType::i8:
      return 1;
    case PackedType::u16:
    case PackedType::i16:
      return 2;
    case PackedType::u32:
    case PackedType::i32:
      return 4;
    case PackedType::i64:
      return 8;
  }
  return 0;
}

PackedTokens::PackedTokens(InputFile file, PackedType type, std::int64_t offset, std::int64_t count,
                           std::string kind)
    : file_(std::move(file)), type_(type), offset_(offset), count_(count), kind_(std::move(kind)) {
  assert(offset_ + count_ * packed_bytes(type_) <= file_.bytes());
}

void PackedTokens::read(std::int64_t first, std::span<std::int32_t> into) const {
  assert(first >= 0 && first + static_cast<std::int64_t>(into.size()) <= count_);
  const std::int64_t offset = offset_ + first * packed_bytes(type_);
  switch (type_) {
    case PackedType::u8:
      return unpack<std::uint8_t>(file_, offset, into);
    case PackedType::i8:
      return unpack<std::int8_t>(file_, offset, into);
    case PackedType::u16:
      return unpack<std::uint16_t>(file_, offset, into);
    case PackedType::i16:
      return unpack<std::int16_t>(file_, offset, into);
    case PackedType::u32:
      return unpack<std::uint32_t>(file_, offset, into);
    case PackedType::i32:
      return unpack<std::int32_t>(file_, offset, into);
    case PackedType::i64:
      return unpack<std::int64_t>(file_, offset, into);
  }
}

std::string PackedTokens::description() const {
  return fmt::format(
      "{} '{}', {} tokens ({})", kind_, file_.path().string(), count_,
      packed_bytes(type_) == 1 ? "its bytes" : fmt::format("{} bits each", 8 * packed_bytes(type_)));
}

}  // namespace alpa
