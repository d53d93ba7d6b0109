#pragma once
// Internal to this module.
#include <filesystem>
#include <string>

#include "libalpa/trainer/token_source.h"

namespace alpa {

/// A file opened for reading. Errors name it.
class InputFile {
 public:
  /// Throws Error(input) unless it is a regular file that may be read.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }  ///< its length when it was opened

  /// Fills `into` from byte `offset` on. Throws Error(run_time) where the file is shorter (it has changed) or
  /// cannot be read.
  void read(std::int64_t offset, void* into, std::size_t count) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

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
