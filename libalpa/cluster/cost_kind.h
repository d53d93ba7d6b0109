#pragma once
#include <string>

#include "libalpa/cluster/profile.h"

namespace alpa {

// Kinds of costs, by name. What makes one cost of a kind differ from its measurement (a clock that was
// lowered, a busy link) makes all of that kind differ alike, so they share one error and one factor of
// calibration.

/// By operator and type: "einsum f32", of "einsum equation='m k, k n -> m n' f32[8x16] f32[16x32]".
std::string cost_kind_of_operator(const std::string& signature);

/// "all-reduce within nodes", "transfers between nodes" (sends).
std::string cost_kind_of_collective(CollectiveKind, bool between_nodes);

/// Moves within a device's memory.
constexpr const char* kCostOfCopies = "copies";

/// Between a device's memory and its host's.
constexpr const char* kCostOfMoves = "moves";

}  // namespace alpa
