#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/program/order/rank_rows.h"

namespace alpa {

enum class TimelineKind { planned, measured, emulated };

/// A step, planned or measured, as Chrome trace events (chrome://tracing, Perfetto), times in microseconds: a
/// process for each rank, a thread for each lane, an event for each instruction with its segment and
/// micro-batch. What lies between these is an event of the category "idle", named by what is waited for, so
/// that the events of a lane fill the step without overlaps. The counter "memory" has what of the arena is
/// live, and what is not. Planned and measured traces of a program have the same events but for times, idle
/// ones and counters; measured ones say in the labels of a process where it ran, and which rank was slowest.
std::string chrome_trace(TimelineKind, const std::vector<RankRows>&, const Program&, const Graph&);

/// Whether a file begins as such a trace does.
bool is_chrome_trace(TimelineKind, const std::filesystem::path&);

}  // namespace alpa
