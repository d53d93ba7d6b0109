#include "libalpa/comm/pair_rounds.h"

#include <map>

namespace alpa {

std::vector<std::vector<RankPair>> pair_rounds(std::span<const RankPair> pairs) {
  std::vector<std::vector<RankPair>> rounds;
  std::map<int, std::vector<bool>> is_in;  // [rank][round]
  const auto is_free = [&](int rank, std::size_t round) {
    const std::vector<bool>& of = is_in[rank];
    return round >= of.size() || !of[round];
  };
  for (const RankPair& pair : pairs) {
    std::size_t round = 0;
    while (!is_free(pair.first, round) || !is_free(pair.second, round)) ++round;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(pair);
    for (const int rank : {pair.first, pair.second}) {
      if (round >= is_in[rank].size()) is_in[rank].resize(round + 1);
      is_in[rank][round] = true;
    }
  }
  return rounds;
}

}  // namespace alpa
