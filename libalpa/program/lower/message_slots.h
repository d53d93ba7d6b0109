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

/// For each way how many messages the sender must be able to leave behind: a sender whose slots are all on
/// their way waits until the oldest has arrived. One between neighbours. Where a value passes stages by, its
/// ends are micro-batches apart, so it has one for each stage on the way, both ends among them, that the
/// pipeline is not held up (no more than the earlier stage has in flight), and more where meshes would still
/// wait for each other in a circle. `orders`: [mesh], of the runs of all its stages.
std::vector<std::int64_t> message_slots(const std::vector<std::vector<StageRun>>& orders,
                                        const std::vector<Way>&);

}  // namespace alpa
