#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "libalpa/base/log.h"
#include "libalpa/h5/file_lock.h"

namespace alpa {

class Descriptor;

/// Bytes beside a target that takes long to make, e.g. "corpus.h5.partial-tokens", which outlive a process
/// that ends midway, so that the next one goes on with them. One process has them at a time, by a lock.
class ResumableFile {
 public:
  /// Opens the file, or makes it. Throws Error(input) where another process has it or the folder cannot be
  /// written. On a file system without locks it keeps nobody out, and warns.
  ResumableFile(const std::filesystem::path& target, const std::string& part, Log& log,
                const TakeLock& take_lock = flock);
  ~ResumableFile();
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }

  void cut(std::int64_t bytes);         ///< leaves the first `bytes`. Throws Error(run_time)
  void append(std::string_view bytes);  ///< throws Error(run_time), e.g. where the disk is full
  void sync();                          ///< brings all that was appended to disk; throws Error(run_time)
  void remove();                        ///< takes its name away; the last thing that is done with it

 private:
  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
  std::int64_t bytes_ = 0;
};

}  // namespace alpa
