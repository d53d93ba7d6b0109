#include "libalpa/sharding/ring.h"

namespace alpa {
namespace {

std::vector<int> those_with(const std::vector<std::vector<DimensionFactors>>& tensors, int factor) {
  std::vector<int> found;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    for (const DimensionFactors& dimension : tensors[t])
      for (const int f : dimension)
        if (f == factor) found.push_back(static_cast<int>(t));
  return found;
}

}  // namespace

std::vector<RingRound> Ring::rounds() const {
  std::vector<RingRound> rounds;
  // The own block comes first, so that what others bring is added to something; where results travel it comes
  // last, because they return to it.
  if (results.empty()) rounds.push_back({});
  for (int hops = 1; hops < devices; ++hops) rounds.push_back({hops, true, !results.empty() && hops > 1});
  if (!results.empty()) rounds.push_back({0, false, true});
  return rounds;
}

Ring ring_of(const ShardingRule& rule, const std::vector<int>& strategy, const MeshShape& mesh) {
  for (std::size_t axis = 0; axis < strategy.size(); ++axis) {
    const int factor = strategy[axis];
    if (factor < 0 || rule.factors[factor].ring < 0) continue;
    return {static_cast<int>(axis), mesh[axis], those_with(rule.operands, factor),
            those_with(rule.results, factor)};
  }
  return {};
}

}  // namespace alpa
