#pragma once
// Internal to this module.
#include <string>

#include "libalpa/dataset/input_file.h"
#include "libalpa/dataset/token_source.h"

namespace alpa {

enum class PackedType { u8, i8, u16, i16, u32, i32, i64 };

std::int64_t packed_bytes(PackedType);

/// Tokens of one width, little endian, one after another in a file.
class PackedTokens final : public TokenSource {
 public:
  /// `count` tokens from byte `offset` on, which the file must hold. `kind` begins the description.
  PackedTokens(InputFile file, PackedType type, std::int64_t offset, std::int64_t count, std::string kind);

  std::int64_t size() const override { return count_; }
  void read(std::int64_t first, std::span<std::int32_t> into) const override;
  std::string description() const override;

 private:
  InputFile file_;
  PackedType type_;
  std::int64_t offset_, count_;
  std::string kind_;
};

}  // namespace alpa
