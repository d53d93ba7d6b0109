#pragma once
#include <functional>
#include <memory>

#include "libalpa/comm/communicator.h"
#include "libalpa/runtime/train_ranks.h"

namespace alpa {

/// The ranks of a job, each a thread with a CPU.
inline void for_train_ranks(int count, const std::function<void(const TrainRanks&)>& body) {
  run_on_threads(count, [&](int, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1), host = make_cpu_device(1);
    const std::unique_ptr<Communicator> control = world.duplicate(), files = world.duplicate();
    body({*device, world, *host, *control, *files});
  });
}

}  // namespace alpa
