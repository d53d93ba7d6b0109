#pragma once
#include <functional>
#include <memory>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"

namespace alpa {

/// What a rank does, with its device, among all ranks.
using RankBody = std::function<void(int rank, Device&, Communicator& all)>;

/// Runs ranks in place of those of run_ranks(), where a test program has others (emulated_gpus_main.cpp).
inline std::function<void(int ranks, const RankBody&)> other_ranks;

/// Runs so many ranks, each a thread with a device of its own.
inline void run_ranks(int ranks, const std::function<std::unique_ptr<Device>()>& make_device,
                      const RankBody& body) {
  if (other_ranks) return other_ranks(ranks, body);
  run_on_threads(ranks, [&](int rank, Communicator& all) { body(rank, *make_device(), all); });
}

}  // namespace alpa
