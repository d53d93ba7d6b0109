#pragma once

namespace alpa {

/// Threads that a parallel region started here would have.
int host_threads();

/// From here on this thread has no more than that, whatever HostThreads asks for.
void limit_host_threads(int most);

/// Parallel regions started in this scope by this thread have that many threads, or as many as
/// OMP_THREAD_LIMIT allows.
class HostThreads {
 public:
  explicit HostThreads(int threads);
  ~HostThreads();
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

 private:
  int before_;
};

}  // namespace alpa
