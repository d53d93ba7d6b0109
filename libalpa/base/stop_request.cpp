#include "libalpa/base/stop_request.h"

#include <pthread.h>

namespace alpa {
namespace {

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) sigaddset(&signals, signal);
  return signals;
}

void die_of(int signal) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::raise(signal);
}

}  // namespace

StopRequest::StopRequest() {
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, &earlier_mask_);
  waiting_ = std::thread([this] { wait_for_signals(); });
}

StopRequest::~StopRequest() {
  ending_ = true;
  pthread_kill(waiting_.native_handle(), SIGUSR1);
  waiting_.join();
  // What came when the thread no longer listened asked for what has happened; unblocked, it would end the
  // process.
  const sigset_t signals = stop_signals();
  const timespec at_once{};
  while (sigtimedwait(&signals, nullptr, &at_once) > 0) continue;
  pthread_sigmask(SIG_SETMASK, &earlier_mask_, nullptr);
}

std::optional<StopRequest::Clock::time_point> StopRequest::asked_at() const {
  const Clock::rep asked = asked_at_;
  if (asked == kNever) return std::nullopt;
  return Clock::time_point(Clock::duration(asked));
}

void StopRequest::ask() {
  Clock::rep never = kNever;
  asked_at_.compare_exchange_strong(never, Clock::now().time_since_epoch().count());
}

void StopRequest::wait_for_signals() {
  const sigset_t signals = stop_signals();
  bool interrupted = false;
  for (int signal = 0; sigwait(&signals, &signal) == 0 && !ending_;) {
    if (signal == SIGINT && interrupted) die_of(signal);
    interrupted |= signal == SIGINT;
    if (first_signal_ == 0) first_signal_ = signal;
    if (signal != SIGUSR1) urgent_ = true;
    ask();
  }
}

}  // namespace alpa
