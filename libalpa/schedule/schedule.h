#pragma once
#include <span>
#include <string>
#include <vector>

#include "libalpa/schedule/stage_run.h"

namespace alpa {

/// How stages that share meshes lie on them, as many on each: 0 1 2 0 1 2, or 0 1 2 2 1 0.
enum class StagePlacement { looped, v_shaped };

/// The order in which the stages of a pipeline do their work, without the update. Each schedule is a file
/// beside this one and a line of the table in schedule.cpp.
struct PipelineSchedule {
  const char* name;       ///< "1f1b": in options, pins and plans
  const char* described;  ///< in a line, with its source
  /// Of each stage by itself, wherever it lies; null: stages share meshes, whose orders are `of_meshes`.
  std::vector<StageRun> (*of_stage)(StageIndex stage, int stages, int micro_batches);
  StagePlacement placement = StagePlacement::looped;  ///< of stages that share meshes
  std::vector<std::vector<StageRun>> (*of_meshes)(int meshes, int stages_per_mesh,
                                                  int micro_batches) = nullptr;
  /// Micro-batches of one of equal stages, forward and backward, that a mesh waits for about, for each of the
  /// other meshes.
  double bubble = 1;

  bool shares_meshes() const { return of_meshes != nullptr; }
  /// 1, or at least 2 looped ones, or 2 that make a V. (One stage alone has every schedule, and one order.)
  bool takes(int stages_per_mesh) const;
};

/// In the table's order. None of those whose stages have meshes of their own holds fewer micro-batches on any
/// stage than the first.
std::span<const PipelineSchedule> schedules();
std::vector<std::string> schedule_names();
std::vector<std::string> schedule_names(int stages_per_mesh);    ///< of those that take so many
const PipelineSchedule& find_schedule(const std::string& name);  ///< Throws Error(input) that lists them.

/// Those that differ on so many stages with so many micro-batches: of equal ones the first, and of a stage
/// that waits for no other the first of all.
std::vector<std::string> differing_schedules(int stages, int stages_per_mesh, int micro_batches);

/// [stage] its mesh, under a schedule that takes so many.
std::vector<int> meshes_of_stages(const PipelineSchedule&, int stages, int stages_per_mesh);

/// Whether the schedule can run stages that lie so, whichever its meshes' numbers are.
bool runs_on(const PipelineSchedule&, const std::vector<int>& mesh_of_stage);

/// The runs of each mesh, without the update, where the schedule runs on them. A mesh with one stage does
/// them in the schedule's order. Where stages of a schedule of stages by themselves share a mesh, each does
/// in its own order whichever can start first: of several gradients go before, and of two forwards that of
/// the later stage.
std::vector<std::vector<StageRun>> mesh_orders(const PipelineSchedule&, const std::vector<int>& mesh_of_stage,
                                               int micro_batches);

/// [stage] The most micro-batches that it holds at once.
std::vector<int> held_by_stages(const PipelineSchedule&, const std::vector<int>& mesh_of_stage,
                                int micro_batches);

/// Most micro-batches between the begin of their first segment and the end of their last. Where runs are of
/// several stages, each of a micro-batch's stages counts.
int most_in_flight(const std::vector<StageRun>&);

}  // namespace alpa
