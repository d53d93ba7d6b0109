#pragma once
#include <functional>

namespace alpa {

/// Threads for `wanted` (0: as many as this process may run on).
int thread_count(int wanted);

/// Calls task(0) ... task(count - 1), each once, on up to `threads` threads, and returns when all are done.
/// What a task throws is thrown again, that of the first task where several throw.
void run_tasks(int count, int threads, const std::function<void(int)>& task);

}  // namespace alpa
