#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "libalpa/base/log.h"

namespace alpa {

/// Reports how far something large has come and how long it may still take, every few seconds.
class ByteProgress {
 public:
  ByteProgress(std::string doing, std::int64_t total_bytes, Log& log);
  void add(std::int64_t bytes);

  /// So much was done before: it counts as done, and not in how fast it goes from now on.
  void was_done(std::int64_t bytes);

 private:
  std::string doing_;
  std::int64_t total_, done_ = 0, done_before_ = 0;
  Log& log_;
  std::chrono::steady_clock::time_point started_, reported_;
};

}  // namespace alpa
