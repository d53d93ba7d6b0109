#include "libalpa/trainer/byte_progress.h"

#include <fmt/core.h>

#include <utility>

#include "libalpa/base/units.h"

namespace alpa {

ByteProgress::ByteProgress(std::string doing, std::int64_t total_bytes, Log& log)
    : doing_(std::move(doing)), total_(total_bytes), log_(log), told_(std::chrono::steady_clock::now()) {}

void ByteProgress::add(std::int64_t bytes) {
  done_ += bytes;
  const auto now = std::chrono::steady_clock::now();
  if (now - told_ < std::chrono::seconds(5)) return;
  told_ = now;
  log_.info(fmt::format("{}: {} of {}", doing_, bytes_text(static_cast<double>(done_)),
                        bytes_text(static_cast<double>(total_))));
}

}  // namespace alpa
