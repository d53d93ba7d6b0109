#include "libalpa/base/parallel_tasks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace alpa {

int thread_count(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void run_tasks(int count, int threads, const std::function<void(int)>& task) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < std::min(threads, count); ++t) others.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace alpa
