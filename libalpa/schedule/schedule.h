#pragma once
#include <span>
#include <string>
#include <vector>

#include "libalpa/schedule/stage_run.h"

namespace alpa {

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
