#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "libalpa/program/program.h"
#include "libalpa/trainer/train_ranks.h"

namespace alpa {

/// A number of each rank's, by rank. Collective.
std::vector<std::int64_t> gather_numbers(Communicator&, Stream&, std::int64_t mine);

/// That each rank has the memory for an arena of `arena_bytes`, and on its host for `input_bytes` of samples.
/// Collective; all ranks find the same. Throws Error(allocation) where the device of a rank has too little.
/// The result is "" where the nodes have enough for the processes too, else what is missing, see
/// memory_shortfall().
std::string check_memory(const Program& training, std::int64_t arena_bytes, std::int64_t input_bytes,
                         const TrainRanks&, int ranks_on_node, Stream& control_stream);

}  // namespace alpa
