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
  std::vector<StageRun> (*order)(StageIndex stage, int stages, int micro_batches);
};

/// In the table's order. None holds fewer micro-batches on any stage than the first.
std::span<const PipelineSchedule> schedules();
std::vector<std::string> schedule_names();
const PipelineSchedule& find_schedule(const std::string& name);  ///< Throws Error(input) that lists them.

/// Those that differ on so many stages with so many micro-batches: of equal ones the first, and of a stage
/// that waits for no other the first of all.
std::vector<std::string> differing_schedules(int stages, int micro_batches);

/// The runs of each mesh, without the update. A mesh with one stage does them in the schedule's order; where
/// stages share a mesh, each in its own order, whichever can start first: of several gradients go before, and
/// of two forwards that of the later stage.
std::vector<std::vector<StageRun>> mesh_orders(const PipelineSchedule&, const std::vector<int>& mesh_of_stage,
                                               int micro_batches);

/// Most micro-batches between the begin of their first segment and the end of their last.
int most_in_flight(const std::vector<StageRun>&);

}  // namespace alpa
