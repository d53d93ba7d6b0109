#include "libalpa/graph/low_rank.h"

namespace alpa {

LowRankExtents::LowRankExtents(const Shape& tensor, std::int64_t leading) {
  for (std::size_t d = 0; d < tensor.size(); ++d)
    (static_cast<std::int64_t>(d) < leading ? rows : columns) *= tensor[d];
}

int low_rank_rows(const Shape& tensor, std::int64_t rank) {
  int best = 0;
  for (int leading = 1; leading < static_cast<int>(tensor.size()); ++leading)
    if (best == 0 || LowRankExtents(tensor, leading).factor_elements(rank) <
                         LowRankExtents(tensor, best).factor_elements(rank))
      best = leading;
  return best;
}

}  // namespace alpa
