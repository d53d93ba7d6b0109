#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/program/order/rank_rows.h"

namespace alpa {

/// What of a rank's arena holds something that is still read, from then on.
struct LiveBytes {
  double at_s = 0;
  std::int64_t bytes = 0;
};

/// Over a step, by its rows: states all the time, other buffers from the first row that touches them to the
/// last, in each of their slots. Never more than the arena (MemoryUse::total), as what shares bytes there is
/// never live at once.
std::vector<LiveBytes> live_bytes(const RankRows&, const Program&);

}  // namespace alpa
