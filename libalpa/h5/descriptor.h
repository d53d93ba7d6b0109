#pragma once
// Internal to this module.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "libalpa/base/error.h"

namespace alpa {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  operator int() const { return number_; }
  void reset() {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

/// "cannot <doing> '<path>': <text of error_number>", with what to try where that is known.
Error file_error(ErrorKind kind, const std::string& doing, const std::filesystem::path& path,
                 int error_number);

/// Writes all of `bytes` at `offset`; `path` is for the message of the Error(run_time).
void write_at(int descriptor, std::int64_t offset, std::string_view bytes, const std::filesystem::path& path);

/// Brings to disk what this machine wrote.
void sync(int descriptor, const std::filesystem::path& path);

}  // namespace alpa
