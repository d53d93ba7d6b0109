#pragma once
#include <omp.h>

namespace alpa {

/// Kernels run in this scope use that many threads.
class HostThreads {
 public:
  explicit HostThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~HostThreads() { omp_set_num_threads(before_); }
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

 private:
  int before_;
};

}  // namespace alpa
