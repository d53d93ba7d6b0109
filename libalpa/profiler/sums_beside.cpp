#include "libalpa/profiler/sums_beside.h"

#include <chrono>
#include <utility>

#include "libalpa/base/clock.h"
#include "libalpa/comm/naps.h"
#include "libalpa/comm/prompt_thread.h"
#include "libalpa/kernels/cpu/host_threads.h"

namespace alpa {

SumsBeside::SumsBeside(Device& device, Communicator& ranks, std::int64_t bytes)
    : device_(device), ranks_(ranks), stream_(device.make_stream()), memory_(device.allocate(bytes)) {
  stream_->fill_zero(memory_->data(), bytes);  // sums of anything else would grow beyond all bounds
  stream_->synchronize();
}

void SumsBeside::start(int calls) {
  if (device_.kind() == DeviceKind::cuda) return move(calls);  // queues them
  thread_ = std::jthread([this, calls] {
    run_promptly();
    limit_host_threads(1);  // the cores are for who computes
    try {
      move(calls);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void SumsBeside::finish() {
  if (thread_.joinable()) thread_.join();
  stream_->synchronize();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void SumsBeside::move(int calls) {
  const CollectiveCall sum{
      .kind = CollectiveCall::Kind::all_reduce, .to = memory_->data(), .bytes = memory_->bytes()};
  for (int call = 0; call < calls; ++call) {
    ranks_.start(*stream_, sum);
    Naps naps(monotonic_s());
    for (Progress now; (now = ranks_.advance(*stream_)) != Progress::done;) {
      if (now == Progress::some) {
        naps.moved(monotonic_s());
        continue;
      }
      ranks_.move_messages();
      std::this_thread::sleep_for(std::chrono::duration<double>(naps.next_s(monotonic_s(), false)));
      ranks_.look("measuring computation alongside communication");
    }
  }
}

}  // namespace alpa
