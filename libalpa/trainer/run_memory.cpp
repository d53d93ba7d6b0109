#include "libalpa/trainer/run_memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_facts.h"
#include "libalpa/trainer/run_needs.h"

namespace alpa {

std::vector<std::int64_t> gather_numbers(Communicator& control, Stream& stream, std::int64_t mine) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(control.size()));
  control.all_gather(stream, &mine, all.data(), sizeof mine);
  return all;
}

std::string check_memory(const Program& training, std::int64_t arena_bytes, std::int64_t input_bytes,
                         const TrainRanks& ranks, int ranks_on_node, Stream& control_stream) {
  const auto least_of_ranks = [&](const Device& device, int sharing) {
    const auto all =
        gather_numbers(ranks.control, control_stream, device.memory_bytes() / std::max(sharing, 1));
    return *std::min_element(all.begin(), all.end());
  };
  // The ranks of a node have its memory in common, not its GPUs.
  const bool emulated = ranks.costs != nullptr, shared = ranks.device.kind() != DeviceKind::cuda && !emulated;
  const std::int64_t there = least_of_ranks(ranks.device, shared ? ranks_on_node : 1),
                     on_node = least_of_ranks(ranks.host, ranks_on_node);
  const std::int64_t reserved = reserved_bytes(ranks.device.kind());
  const std::string beside =
      reserved > 0 ? fmt::format(" and {} are kept for CUDA and its libraries", bytes_text(reserved)) : "";
  if (arena_bytes + reserved > there)
    throw Error(ErrorKind::allocation,
                fmt::format("the plan takes {} per rank{}, {} is there", bytes_text(arena_bytes), beside,
                            bytes_text(there)),
                "plan with a smaller memory in the cluster, with more micro-batches, or for more ranks");
  ProcessMemory process = process_memory(training, shared ? arena_bytes : 0, input_bytes);
  if (emulated) process = {exchanged_bytes(training), 0, input_bytes};
  return memory_shortfall(process, on_node);
}

}  // namespace alpa
