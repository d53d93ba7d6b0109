#include "libalpa/trainer/run_memory.h"

#include <algorithm>

#include "libalpa/runtime/memory_there.h"
#include "libalpa/trainer/read_ahead.h"
#include "libalpa/trainer/run_needs.h"

namespace alpa {

RankMemory rank_memory(const Graph& graph, std::span<const Program* const> programs,
                       const BatchReader& training, const BatchReader& held_out) {
  RankMemory most;
  const auto take = [&](const MeshProgram& mesh) {
    most.arena = std::max(most.arena, mesh.memory.total);
    most.host_arena = std::max(most.host_arena, mesh.memory.host);
  };
  for (const Program* program : programs) {
    for (const MeshProgram& mesh : program->meshes) take(mesh);
    if (program->servers) take(*program->servers);
  }
  for (const StepSamples& samples : step_samples_of_devices(graph, programs))
    most.input = std::max(most.input, ReadAhead::bytes(samples, training));
  if (&held_out != &training) most.input += held_out.held_bytes();
  return most;
}

MemoryCheck check_memory(const Program& training, const Graph& graph, const RankMemory& memory,
                         const TrainRanks& ranks, const TrainSettings& settings, Stream& control_stream) {
  const MemoryThere there = memory_there(ranks, control_stream);
  check_arena(there, memory.arena, "the plan takes",
              "plan with a smaller memory in the cluster, with more micro-batches, or for more ranks");
  ProcessMemory process = process_memory(
      training, graph, (there.is_the_same ? memory.arena : 0) + memory.host_arena, memory.input);
  if (ranks.costs) process = {exchanged_bytes(training), memory.input};
  MemoryCheck check;
  check.saving = possible_saving(settings.checkpoints, process, there.node);
  check.saving_text = checkpoints_text(settings.checkpoints, check.saving, process);
  if (check.saving == CheckpointSaving::synchronous) process.snapshot = 0;
  check.shortfall = memory_shortfall(process, there.node);
  return check;
}

}  // namespace alpa
