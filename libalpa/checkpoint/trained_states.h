#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>

#include "libalpa/base/log.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/runtime/executor.h"
#include "libalpa/runtime/train_ranks.h"

namespace alpa {

/// Which checkpoint of a trained model is taken.
struct TrainedSource {
  std::filesystem::path checkpoint = {};  ///< or, where it is "", the newest good one of
  std::filesystem::path run_dir = {};
};

/// Throws Error(usage) unless one of them is given alone: --checkpoint, --run-dir.
void check_trained_source(const TrainedSource&);

/// That checkpoint. Collective. Throws Error(input) where there is none.
std::filesystem::path trained_checkpoint(const TrainedSource&, const TrainRanks&, Stream& control, Log&);

/// Has each rank load its part of a checkpoint of the graph's model, `bytes` in all, with progress lines. One
/// rank holds the file against the graph first, so that what differs is said once. Collective.
CheckpointFacts load_trained(const std::filesystem::path& checkpoint, const Graph&, std::int64_t bytes,
                             const TrainRanks&, Stream& control, Log&,
                             const std::function<CheckpointFacts(const BytesRead&)>& load);

/// What a rank's executor holds of states.
std::int64_t state_bytes(const Executor&);

}  // namespace alpa
