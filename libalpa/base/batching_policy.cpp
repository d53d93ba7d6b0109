#include "libalpa/base/batching_policy.h"

#include <algorithm>

namespace alpa {

std::span<const Word<BatchingPolicy>> batching_policies() {
  static constexpr Word<BatchingPolicy> words[] = {
      {"serial", BatchingPolicy::serial, "each vertex by itself"},
      {"per-sample", BatchingPolicy::per_sample, "vertices of one height of one sample together"},
      {"frontier", BatchingPolicy::frontier, "vertices of one height of all samples together, as Cavs does"},
      {"agenda", BatchingPolicy::agenda,
       "all vertices that can be computed and are of one kind, as DyNet does: those without children, and "
       "those with"},
      {"padded", BatchingPolicy::padded,
       "the next vertex of every sample together, all as long as the longest: of chains alone, for "
       "comparison"}};
  return words;
}

std::string_view batching_name(BatchingPolicy policy) {
  return std::ranges::find(batching_policies(), policy, &Word<BatchingPolicy>::value)->name;
}

}  // namespace alpa
