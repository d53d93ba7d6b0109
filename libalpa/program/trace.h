#pragma once
#include <string>
#include <vector>

#include "libalpa/program/simulate.h"

namespace alpa {

/// A timeline, planned or measured, as Chrome trace events (chrome://tracing, Perfetto): one thread per
/// stage, times in microseconds, one event per instruction with its segment and micro-batch.
std::string chrome_trace(const std::vector<TimelineRow>&, const Program&, const Graph&);

}  // namespace alpa
