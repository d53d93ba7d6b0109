#include "libalpa/kernels/cpu/host_threads.h"

#include <omp.h>

#include <algorithm>
#include <limits>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace alpa {
namespace {

thread_local int most_host_threads = std::numeric_limits<int>::max();

#ifdef __SSE__
unsigned control() { return _mm_getcsr(); }
void set_control(unsigned bits) { _mm_setcsr(bits); }
constexpr unsigned flushing = 0x8040;  // results, and operands
#else
unsigned control() { return 0; }
void set_control(unsigned) {}
constexpr unsigned flushing = 0;
#endif

}  // namespace

int host_threads() { return omp_get_max_threads(); }

// oneDNN takes it for granted that it gets as many threads as it asks for, and leaves work undone otherwise.
HostThreads::HostThreads(int threads) : before_(omp_get_max_threads()), control_before_(control()) {
  set_control(control_before_ | flushing);
  omp_set_dynamic(0);
  omp_set_num_threads(std::min({threads, most_host_threads, omp_get_thread_limit()}));
}

void limit_host_threads(int most) {
  most_host_threads = most;
  omp_set_num_threads(most);
}

HostThreads::~HostThreads() {
  omp_set_num_threads(before_);
  set_control(control_before_);
}

}  // namespace alpa
