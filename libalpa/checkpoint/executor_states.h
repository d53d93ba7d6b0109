#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/runtime/executor.h"

// States between an executor's arena and what they start from or are kept in, a few MiB at a time.

namespace alpa {

/// Gives every state its initial value.
void initialize_states(Executor&, const Graph&, std::int64_t seed);

/// Gives every state its value in a checkpoint (see load_checkpoint()); each rank reads its tiles.
CheckpointFacts load_states(Executor&, const Graph&, const std::filesystem::path& checkpoint,
                            const BytesRead&);

/// Gives the states of another graph, whose program the executor has, that bear the name of one of the
/// model's its value in a checkpoint of the model; leaves the others as they are.
CheckpointFacts load_parameters(Executor&, const Graph& executed, const Graph& model,
                                const std::filesystem::path& checkpoint, const BytesRead&);

/// What saves all states (see checkpoint_writer()): of copies of a tile each rank that has one writes some.
/// It reads the executor's memory while it writes. Collective.
std::unique_ptr<TensorWriter> state_writer(Executor&, const Graph&, const std::filesystem::path& checkpoint,
                                           const CheckpointFacts&, const Provenance&,
                                           std::optional<WritingRanks> ranks);

/// The bytes of a checkpoint that each rank of a program writes, see tensor_shares().
std::vector<std::int64_t> checkpoint_shares(const Graph&, const Program&);

}  // namespace alpa
