#include "libalpa/cluster/micro_batch_counts.h"

#include <algorithm>

namespace alpa {

std::vector<int> micro_batch_counts(std::int64_t batch, int devices) {
  std::vector<int> counts;
  const int most = std::max(8, 4 * devices);
  for (int count = 1; count <= batch && count <= most; count *= 2)
    if (batch % count == 0) counts.push_back(count);
  return counts;
}

}  // namespace alpa
