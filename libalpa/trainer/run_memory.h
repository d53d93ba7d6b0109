#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/program/program.h"
#include "libalpa/runtime/train_ranks.h"
#include "libalpa/trainer/batch_reader.h"
#include "libalpa/trainer/train_settings.h"

namespace alpa {

/// What a rank of a run takes, at most, in bytes.
struct RankMemory {
  std::int64_t arena = 0;       ///< of its device
  std::int64_t host_arena = 0;  ///< for what rests there
  std::int64_t input = 0;       ///< of its host, for samples: ReadAhead::bytes
};

/// Of any rank, for these programs of one plan. The readers may be the same.
RankMemory rank_memory(const Graph&, std::span<const Program* const>, const BatchReader& training,
                       const BatchReader& held_out);

struct MemoryCheck {
  std::string shortfall;  ///< "" where the nodes have enough for the processes, see memory_shortfall()
  CheckpointSaving saving = CheckpointSaving::synchronous;  ///< that there is room for
  std::string saving_text;
};

/// That each rank has that memory. Collective; all ranks find the same. Throws Error(allocation) where the
/// device of a rank has too little.
MemoryCheck check_memory(const Program& training, const Graph&, const RankMemory&, const TrainRanks&,
                         const TrainSettings&, Stream& control_stream);

}  // namespace alpa
