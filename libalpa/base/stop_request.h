#pragma once
#include <csignal>

namespace alpa {

/// A wish to end early, polled by loops at points where ending is safe. While the object lives, SIGTERM,
/// SIGUSR1 and SIGINT make the wish instead of killing the process; a second SIGINT kills it. Construct it
/// before MPI starts; one at a time.
class StopRequest {
 public:
  /// Throws Error(run_time) where the handlers cannot be installed.
  StopRequest();
  /// Puts the earlier handlers back.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool is_asked() const;
  int signal() const;  ///< the first signal that asked; 0 where none did

  /// The same wish without a signal (a STOP file, the job's end).
  void ask();

 private:
  struct sigaction earlier_[3];
};

}  // namespace alpa
