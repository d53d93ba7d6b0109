#include "libalpa/dataset/input_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "libalpa/base/unreadable_file.h"

namespace alpa {
InputFile::InputFile(std::filesystem::path path)
    : InputFile(path, open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}

InputFile::InputFile(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {
  if (descriptor_ < 0) throw unreadable_file(path_, std::strerror(errno));
  struct stat about {};
  if (fstat(descriptor_, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(descriptor_);
    throw unreadable_file(path_, "not a regular file");
  }
  bytes_ = about.st_size;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

void InputFile::read(std::int64_t offset, void* into, std::size_t count) const {
  auto* at = static_cast<char*>(into);
  while (count > 0) {
    const ssize_t got = pread(descriptor_, at, count, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw Error(ErrorKind::run_time,
                  fmt::format("cannot read byte {} of '{}': {}", offset, path_.string(),
                              got < 0 ? std::strerror(errno) : "it is shorter than when it was opened"),
                  "leave the data as it is while it is read");
    at += got;
    offset += got;
    count -= static_cast<std::size_t>(got);
  }
}

Error refused(const InputFile& file, const std::string& why, const std::string& hint) {
  return Error(ErrorKind::input, fmt::format("'{}' {}", file.path().string(), why), hint);
}

}  // namespace alpa
