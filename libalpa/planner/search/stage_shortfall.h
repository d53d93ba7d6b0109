#pragma once
#include <cstdint>

#include "libalpa/planner/search/stage_estimates.h"
#include "libalpa/planner/search/stage_spans.h"

namespace alpa {

/// What a stage of these layers needs at least, which is more than there is; 0: there is none.
struct StageShortfall {
  int first_layer = 0, end_layer = 0, devices = 1;
  std::int64_t bytes = 0;
  std::int64_t there = 0;  ///< on a device of those that it was to lie on; 0: as everywhere
};

/// Of pipelines that memory allows none of. Every layer is in some stage of one: the first layer that there
/// is no stage with, and the least that one of those needs. None where memory is not what is short.
StageShortfall least_shortfall(const StageSpans&, const StageEstimates&, std::int64_t memory_bytes);

}  // namespace alpa
