#include "libalpa/device/device_waits.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "libalpa/base/units.h"

namespace alpa {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenLooks{500};
constexpr double kLongestLook_s = 1;  // after longer ones this process was suspended

}  // namespace

DeviceWaits::~DeviceWaits() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ending_.notify_one();
  thread_.join();
}

void DeviceWaits::limit(HangLimits limits, Report warn, std::function<void(const Error&)> give_up) {
  limits_ = limits;
  warn_ = std::move(warn);
  give_up_ = std::move(give_up);
}

void DeviceWaits::watch() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    Clock::time_point before = Clock::now();
    while (!ending_.wait_for(lock, kBetweenLooks, [this] { return ends_; })) {
      const Clock::time_point now = Clock::now();
      look(std::chrono::duration<double>(now - before).count());
      before = now;
    }
  });
}

void DeviceWaits::look(double awake_s) {
  const std::uint64_t number = number_.load(std::memory_order_relaxed);
  const char* const name = name_.load(std::memory_order_relaxed);
  if (number != seen_ || !name) {
    seen_ = number;
    lasted_s_ = 0;
    is_reported_ = false;
    return;
  }
  lasted_s_ += std::min(awake_s, kLongestLook_s);
  const auto text = [&] { return fmt::format("{} has lasted {}", name, seconds_text(lasted_s_)); };
  if (!is_reported_ && limits_.report_after_s > 0 && lasted_s_ >= limits_.report_after_s) {
    is_reported_ = true;
    warn_(text() + ": another rank is late, or NCCL does not reach it");
  }
  if (limits_.timeout_s > 0 && lasted_s_ >= limits_.timeout_s)
    give_up_(Error(ErrorKind::peer, text() + ": another rank hangs, or NCCL does not reach it",
                   "the other ranks' messages; NCCL_DEBUG=INFO shows the network that NCCL took, "
                   "NCCL_SOCKET_IFNAME chooses another; --hang-timeout gives more time"));
}

void end_process(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  std::fflush(nullptr);
  _exit(static_cast<int>(error.kind()));
}

}  // namespace alpa
