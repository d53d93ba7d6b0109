#include "libalpa/kernels/cpu/host_loops.h"

#include <omp.h>

#include <algorithm>

namespace alpa {

int host_threads() { return omp_get_max_threads(); }

// oneDNN takes it for granted that it gets as many threads as it asks for, and leaves work undone otherwise.
HostThreads::HostThreads(int threads) : before_(omp_get_max_threads()) {
  omp_set_dynamic(0);
  omp_set_num_threads(std::min(threads, omp_get_thread_limit()));
}

HostThreads::~HostThreads() { omp_set_num_threads(before_); }

}  // namespace alpa
