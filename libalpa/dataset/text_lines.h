#pragma once
// Internal to this module.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/dataset/byte_stream.h"

namespace alpa {

/// The lines of a file, plain or gzip, one after another and without their ends. One is held at a time.
class TextLines {
 public:
  /// `hint` is what to try where a line is longer than `most_line_bytes`.
  TextLines(const std::filesystem::path& path, std::string hint, std::size_t most_line_bytes = 16 << 20);

  /// The next line, until the one after it is asked for; nullopt at the end. Throws Error(input).
  std::optional<std::string_view> next();

  /// Leaves out so many lines, which are so long together. Before the first next().
  void skip(std::int64_t lines, std::int64_t bytes);

  std::int64_t number() const { return number_; }  ///< of the line given last, from 1 on

  /// Where the next line begins, in bytes of the text.
  std::int64_t position() const { return read_ - static_cast<std::int64_t>(filled_ - begin_); }

  std::int64_t bytes_taken() const { return stream_.bytes_taken(); }
  std::int64_t file_bytes() const { return stream_.file_bytes(); }

  /// "'FILE', line 3: what".
  Error error(const std::string& what, const std::string& hint) const;

 private:
  bool fill(std::size_t& looked);

  std::filesystem::path path_;
  std::string hint_;
  std::size_t most_line_bytes_;
  ByteStream stream_;
  std::string buffer_;
  std::size_t begin_ = 0, filled_ = 0;
  std::int64_t number_ = 0, read_ = 0;
};

}  // namespace alpa
