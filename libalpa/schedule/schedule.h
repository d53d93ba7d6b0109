#pragma once
#include <span>
#include <string>
#include <vector>

namespace alpa {

/// What a stage does for one micro-batch, or (update) once in a step. A backward is whole, or in two parts:
/// what leads to gradients of computed values, for which other stages wait, and what leads to gradients of
/// weights alone.
enum class SegmentKind { forward, backward, backward_inputs, backward_weights, update };
const char* segment_name(SegmentKind);

/// One run of a stage's segment.
struct StageRun {
  SegmentKind kind = SegmentKind::forward;
  int micro_batch = 0;
  bool operator==(const StageRun&) const = default;
};

/// The order in which the stages of a pipeline do their work, without the update. Each schedule is a file
/// beside this one and a line of the table in schedule.cpp.
struct PipelineSchedule {
  const char* name;       ///< "1f1b": in options, pins and plans
  const char* described;  ///< in a line, with its source
  std::vector<StageRun> (*order)(int stage, int stages, int micro_batches);
};

std::span<const PipelineSchedule> schedules();
std::vector<std::string> schedule_names();
const PipelineSchedule& find_schedule(const std::string& name);  ///< Throws Error(input) that lists them.

/// Most micro-batches between the begin of their first segment and the end of their last.
int most_in_flight(const std::vector<StageRun>&);

}  // namespace alpa
