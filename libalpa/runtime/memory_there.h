#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "libalpa/runtime/train_ranks.h"

namespace alpa {

/// A number of each rank's, by rank. Collective.
std::vector<std::int64_t> gather_numbers(Communicator&, Stream&, std::int64_t mine);

/// The memory that a rank may take, where that is least, in bytes. The ranks of a node have its memory in
/// common, not its GPUs.
struct MemoryThere {
  std::int64_t device = 0;    ///< of its device, with what is reserved
  std::int64_t node = 0;      ///< of its node
  bool is_the_same = false;   ///< its device's is its node's
  std::int64_t reserved = 0;  ///< of its device, for CUDA and its libraries
};

/// Collective; all ranks find the same. `control` is a stream of the host.
MemoryThere memory_there(const TrainRanks&, Stream& control);

/// Throws Error(allocation) where a rank's device has less than that: "the plan takes 12.00 GiB per rank,
/// 8.00 GiB is there". `taker` is "the plan takes", `advice` what to try.
void check_arena(const MemoryThere&, std::int64_t bytes, const std::string& taker, const std::string& advice);

}  // namespace alpa
