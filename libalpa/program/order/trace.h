#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/program/order/simulate.h"

namespace alpa {

/// A timeline, planned or measured, as Chrome trace events (chrome://tracing, Perfetto): one thread per
/// stage, times in microseconds, one event per instruction with its segment and micro-batch.
enum class TimelineKind { planned, measured, emulated };
std::string chrome_trace(TimelineKind, const std::vector<TimelineRow>&, const Program&, const Graph&);

/// Whether a file begins as such a trace does.
bool is_chrome_trace(TimelineKind, const std::filesystem::path&);

}  // namespace alpa
