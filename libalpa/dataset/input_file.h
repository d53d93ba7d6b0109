#pragma once
// Internal to this module.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "libalpa/base/error.h"

namespace alpa {

/// A file opened for reading. Errors name it.
class InputFile {
 public:
  /// Throws Error(input) unless it is a regular file that may be read.
  explicit InputFile(std::filesystem::path path);

  /// What is open for reading as `descriptor`, which it closes; `path` is its name in errors.
  InputFile(std::filesystem::path path, int descriptor);

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

/// Error(input): "'FILE' <why>".
Error refused(const InputFile&, const std::string& why, const std::string& hint = "copy or make it again");

}  // namespace alpa
