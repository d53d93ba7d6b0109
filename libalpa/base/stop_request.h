#pragma once
#include <atomic>
#include <chrono>
#include <csignal>
#include <limits>
#include <optional>
#include <thread>

namespace alpa {

/// A wish to end early, polled by loops at points where ending is safe. While the object lives, SIGTERM,
/// SIGUSR1 and SIGINT make the wish instead of killing the process; a second SIGINT kills it. Construct it
/// before MPI starts; one at a time.
///
/// A thread of its own waits for the signals, which are blocked in the thread that constructs and in those
/// that it starts from then on. A handler must not run on a thread that computes: kernels that oneDNN
/// generates point the stack pointer into their buffers, and the frame of a handler would overwrite what lies
/// there.
class StopRequest {
 public:
  /// Throws std::system_error where the thread cannot be started.
  StopRequest();
  /// Lets the signals through again to the thread that destroys.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  using Clock = std::chrono::steady_clock;

  bool is_asked() const { return asked_at_ != kNever; }
  std::optional<Clock::time_point> asked_at() const;  ///< first; nothing where nobody asked
  /// Whether SIGTERM or SIGINT asked, behind which a kill may follow soon; SIGUSR1 is an early warning.
  bool is_urgent() const { return urgent_; }
  int signal() const { return first_signal_; }  ///< the first signal that asked; 0 where none did

  /// The same wish without a signal (a STOP file, the job's end).
  void ask();

 private:
  void wait_for_signals();

  static constexpr Clock::rep kNever = std::numeric_limits<Clock::rep>::min();

  std::atomic<bool> urgent_ = false, ending_ = false;
  std::atomic<Clock::rep> asked_at_ = kNever;
  std::atomic<int> first_signal_ = 0;
  sigset_t earlier_mask_;
  std::thread waiting_;
};

}  // namespace alpa
