#include "libalpa/runtime/memory_there.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_facts.h"

namespace alpa {

std::vector<std::int64_t> gather_numbers(Communicator& control, Stream& stream, std::int64_t mine) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(control.size()));
  control.all_gather(stream, &mine, all.data(), sizeof mine);
  return all;
}

MemoryThere memory_there(const TrainRanks& ranks, Stream& control) {
  const auto least_of_ranks = [&](const Device& device, int sharing) {
    return std::ranges::min(gather_numbers(ranks.control, control, device.memory_bytes() / sharing));
  };
  MemoryThere there;
  there.is_the_same = ranks.device.kind() != DeviceKind::cuda && !ranks.costs;
  there.device = least_of_ranks(ranks.device, there.is_the_same ? ranks.ranks_on_node : 1);
  there.node = least_of_ranks(ranks.host, ranks.ranks_on_node);
  there.reserved = reserved_bytes(ranks.device.kind());
  return there;
}

void check_arena(const MemoryThere& there, std::int64_t bytes, const std::string& taker,
                 const std::string& advice) {
  if (bytes + there.reserved <= there.device) return;
  const std::string beside = there.reserved > 0 ? fmt::format(" and {} are kept for CUDA and its libraries",
                                                              bytes_text(there.reserved))
                                                : "";
  throw Error(ErrorKind::allocation,
              fmt::format("{} {} per rank{}, {} is there", taker, bytes_text(bytes), beside,
                          bytes_text(there.device)),
              advice);
}

}  // namespace alpa
