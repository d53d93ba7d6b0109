#pragma once

namespace alpa {

/// Threads that a parallel region started here would have.
int host_threads();

/// From here on this thread has no more than that, whatever HostThreads asks for.
void limit_host_threads(int most);

/// Parallel regions started in this scope by this thread have that many threads, or as many as
/// OMP_THREAD_LIMIT allows. In this thread, and in those that its first region of all starts, numbers below
/// the least normal one (1.2e-38) are 0: on many processors each takes as long as a hundred others, and
/// averages of gradients that stay away (AdamW's of rows of a table) end there.
class HostThreads {
 public:
  explicit HostThreads(int threads);
  ~HostThreads();
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

 private:
  int before_;
  unsigned control_before_;  ///< of arithmetic, where the processor has such a register
};

}  // namespace alpa
