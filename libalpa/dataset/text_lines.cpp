#include "libalpa/dataset/text_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace alpa {

TextLines::TextLines(const std::filesystem::path& path, std::string hint, std::size_t most_line_bytes)
    : path_(path),
      hint_(std::move(hint)),
      most_line_bytes_(most_line_bytes),
      stream_(path),
      buffer_(1 << 16, '\0') {}

std::optional<std::string_view> TextLines::next() {
  std::size_t end = 0;
  for (std::size_t looked = begin_; (end = buffer_.find('\n', looked)) >= filled_;) {
    looked = filled_;
    if (!fill(looked)) break;
  }
  if (begin_ == filled_) return std::nullopt;
  end = std::min(end, filled_);
  std::string_view line(buffer_.data() + begin_, end - begin_);
  begin_ = std::min(end + 1, filled_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return line;
}

void TextLines::skip(std::int64_t lines, std::int64_t bytes) {
  stream_.skip(bytes);
  number_ = lines;
  read_ = bytes;
}

Error TextLines::error(const std::string& what, const std::string& hint) const {
  return Error(ErrorKind::input, fmt::format("'{}', line {}: {}", path_.string(), number_, what), hint);
}

/// Brings in more behind what is left; `looked` stays at the same byte.
bool TextLines::fill(std::size_t& looked) {
  looked -= begin_;
  buffer_.erase(0, begin_);
  filled_ -= std::exchange(begin_, 0);
  if (filled_ > most_line_bytes_) {
    ++number_;
    throw error(fmt::format("longer than {} MiB", most_line_bytes_ >> 20), hint_);
  }
  buffer_.resize(std::max<std::size_t>(2 * filled_, 1 << 16), '\0');
  const std::size_t got = stream_.read(buffer_.data() + filled_, buffer_.size() - filled_);
  filled_ += got;
  read_ += static_cast<std::int64_t>(got);
  return got > 0;
}

}  // namespace alpa
