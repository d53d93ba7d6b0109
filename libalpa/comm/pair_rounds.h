#pragma once
#include <span>
#include <vector>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// A greedy edge colouring. Rounds in which each of the pairs comes once and each rank is in one pair at
/// most, so that both ranks of a pair come to it at the same time: each pair is in the first round that has
/// neither of them. Where no rank is in more than d pairs, these are at most 2 d - 1.
std::vector<std::vector<RankPair>> pair_rounds(std::span<const RankPair>);

}  // namespace alpa
