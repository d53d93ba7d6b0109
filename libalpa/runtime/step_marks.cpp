#include "libalpa/runtime/step_marks.h"

#include <chrono>

namespace alpa {

void StepMarks::begin_step() {
  for (std::atomic<std::int64_t>& count : counts_) count.store(0, std::memory_order_relaxed);
  has_given_up_ = false;
}

void StepMarks::count(std::size_t mark) {
  counts_[mark].fetch_add(1, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_release);
  { const std::lock_guard lock(mutex_); }  // who has looked before this is asleep by now
  changed_.notify_all();
}

void StepMarks::wait(std::size_t mark, std::int64_t count) {
  if (is_reached(mark, count)) return;
  std::unique_lock lock(mutex_);
  is_waiting_ = true;
  changed_.wait(lock, [&] { return is_reached(mark, count) || has_given_up(); });
  is_waiting_ = false;
  if (!is_reached(mark, count)) throw Abandoned{};
}

void StepMarks::nap(std::int64_t seen, double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return changes() != seen || has_given_up(); });
}

void StepMarks::give_up() {
  has_given_up_ = true;
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace alpa
