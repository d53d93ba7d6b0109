#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace alpa {

/// How far the threads of a rank are in a step: of each instruction that another thread's wait for, how many
/// runs are done. Each is counted by one thread.
class StepMarks {
 public:
  explicit StepMarks(std::size_t marks) : counts_(marks) {}

  void begin_step();  ///< before any thread is in the step

  bool is_reached(std::size_t mark, std::int64_t count) const {
    return counts_[mark].load(std::memory_order_acquire) >= count;
  }
  void count(std::size_t mark);

  /// Blocks until it is reached. Throws Abandoned when a thread has given up.
  void wait(std::size_t mark, std::int64_t count);
  bool is_waited_for() const { return is_waiting_.load(std::memory_order_relaxed); }  ///< in such a wait

  /// Until something is counted, or a thread gives up, since `seen` changes; at most so long.
  void nap(std::int64_t seen, double seconds);
  std::int64_t changes() const { return changes_.load(std::memory_order_acquire); }

  /// A thread of the step has failed; the others stop too.
  void give_up();
  bool has_given_up() const { return has_given_up_.load(std::memory_order_acquire); }

  struct Abandoned {};

 private:
  std::vector<std::atomic<std::int64_t>> counts_;
  std::atomic<std::int64_t> changes_ = 0;
  std::atomic<bool> is_waiting_ = false, has_given_up_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace alpa
