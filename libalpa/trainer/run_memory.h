#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/program/program.h"
#include "libalpa/trainer/batch_reader.h"
#include "libalpa/trainer/train_ranks.h"

namespace alpa {

/// A number of each rank's, by rank. Collective.
std::vector<std::int64_t> gather_numbers(Communicator&, Stream&, std::int64_t mine);

/// What a rank of a run takes, at most, in bytes.
struct RankMemory {
  std::int64_t arena = 0;  ///< of its device
  std::int64_t input = 0;  ///< of its host, for samples: ReadAhead::bytes
};

/// Of any rank, for these programs of one plan. The readers may be the same.
RankMemory rank_memory(const Graph&, std::span<const Program* const>, const BatchReader& training,
                       const BatchReader& held_out);

/// That each rank has that memory. Collective; all ranks find the same. Throws Error(allocation) where the
/// device of a rank has too little. The result is "" where the nodes have enough for the processes too, else
/// what is missing, see memory_shortfall().
std::string check_memory(const Program& training, const RankMemory&, const TrainRanks&, int ranks_on_node,
                         Stream& control_stream);

}  // namespace alpa
