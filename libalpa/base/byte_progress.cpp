#include "libalpa/base/byte_progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/units.h"

namespace alpa {

ByteProgress::ByteProgress(std::string doing, std::int64_t total_bytes, Log& log)
    : doing_(std::move(doing)),
      total_(total_bytes),
      log_(log),
      started_(std::chrono::steady_clock::now()),
      reported_(started_) {}

void ByteProgress::add(std::int64_t bytes) {
  done_ += bytes;
  const auto now = std::chrono::steady_clock::now();
  if (now - reported_ < std::chrono::seconds(5) || done_ <= done_before_) return;
  reported_ = now;
  const auto done = static_cast<double>(done_), total = static_cast<double>(total_);
  const double passed_s = std::chrono::duration<double>(now - started_).count();
  const auto made = static_cast<double>(done_ - done_before_);
  log_.info(fmt::format("{}: {} of {}, {} left", doing_, bytes_text(done), bytes_text(total),
                        seconds_text(passed_s / made * std::max(0.0, total - done))));
}

void ByteProgress::was_done(std::int64_t bytes) {
  done_ += bytes;
  done_before_ = done_;
  started_ = std::chrono::steady_clock::now();
}

}  // namespace alpa
