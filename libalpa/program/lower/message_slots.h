#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/schedule/schedule.h"

namespace alpa {

/// A value on its way from one stage to another in every micro-batch: made in a forward or in (the first part
/// of) a backward, and wanted at the beginning of the other stage's run of the same kind.
struct Way {
  StageIndex from_stage{0}, to_stage{0};
  bool backward = false;
};

/// For each way the least number of messages that the sender must be able to leave behind, so that the meshes
/// do not wait for each other in a circle: a sender whose slots are all on their way waits until the oldest
/// has arrived. More than one where a value passes stages by, as its ends are several micro-batches apart.
/// `orders`: [mesh], of the runs of all its stages.
std::vector<std::int64_t> message_slots(const std::vector<std::vector<StageRun>>& orders,
                                        const std::vector<Way>&);

}  // namespace alpa
