#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/runtime/executor.h"

// States between an executor's arena and what they start from or are kept in. Host copies live for the call.

namespace alpa {

/// Gives every state its initial value.
void initialize_states(Executor&, const Graph&, std::int64_t seed);

/// Gives every state its value in a checkpoint (see load_checkpoint()); each rank reads its tiles.
CheckpointFacts load_states(Executor&, const Graph&, const std::filesystem::path& checkpoint,
                            const BytesRead&);

/// Saves all states (see save_checkpoint()). Collective.
void save_states(Executor&, const Graph&, const std::filesystem::path& checkpoint, const CheckpointFacts&,
                 const Provenance&, std::optional<WritingRanks> ranks);

}  // namespace alpa
