#pragma once
#include <vector>

#include "libalpa/program/program.h"

namespace alpa {

/// The order of (segment, micro-batch) on one stage, without the update. GPipe (NeurIPS'19): all forwards,
/// then all backwards. 1F1B (PipeDream-flush): stage s of S starts with min(S - s, M) forwards, then
/// alternates.
std::vector<ScheduledSegment> schedule_of(ScheduleKind, int stage, int stages, int micro_batches);

/// Most micro-batches between their forward and the end of their backward.
int most_in_flight(const std::vector<ScheduledSegment>&);

}  // namespace alpa
