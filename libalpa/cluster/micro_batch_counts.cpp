#include "libalpa/cluster/micro_batch_counts.h"

#include <algorithm>

#include "libalpa/base/limits.h"

namespace alpa {

std::vector<int> micro_batch_counts(std::int64_t batch, std::int64_t most) {
  std::vector<int> counts;
  const std::int64_t last = std::min({batch, most, kMostMicroBatches});
  for (std::int64_t count = 1; count <= last; ++count)
    if (batch % count == 0 && (counts.empty() || count >= 2 * counts.back()))
      counts.push_back(static_cast<int>(count));
  return counts;
}

}  // namespace alpa
