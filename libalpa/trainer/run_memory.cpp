#include "libalpa/trainer/run_memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_facts.h"
#include "libalpa/trainer/read_ahead.h"
#include "libalpa/trainer/run_needs.h"

namespace alpa {

std::vector<std::int64_t> gather_numbers(Communicator& control, Stream& stream, std::int64_t mine) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(control.size()));
  control.all_gather(stream, &mine, all.data(), sizeof mine);
  return all;
}

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
  const auto least_of_ranks = [&](const Device& device, int sharing) {
    const auto all =
        gather_numbers(ranks.control, control_stream, device.memory_bytes() / std::max(sharing, 1));
    return *std::min_element(all.begin(), all.end());
  };
  // The ranks of a node have its memory in common, not its GPUs.
  const bool emulated = ranks.costs != nullptr, shared = ranks.device.kind() != DeviceKind::cuda && !emulated;
  const std::int64_t there = least_of_ranks(ranks.device, shared ? settings.ranks_on_node : 1),
                     on_node = least_of_ranks(ranks.host, settings.ranks_on_node);
  const std::int64_t reserved = reserved_bytes(ranks.device.kind());
  const std::string beside =
      reserved > 0 ? fmt::format(" and {} are kept for CUDA and its libraries", bytes_text(reserved)) : "";
  if (memory.arena + reserved > there)
    throw Error(ErrorKind::allocation,
                fmt::format("the plan takes {} per rank{}, {} is there", bytes_text(memory.arena), beside,
                            bytes_text(there)),
                "plan with a smaller memory in the cluster, with more micro-batches, or for more ranks");
  ProcessMemory process =
      process_memory(training, graph, (shared ? memory.arena : 0) + memory.host_arena, memory.input);
  if (emulated) process = {exchanged_bytes(training), memory.input};
  MemoryCheck check;
  check.saving = possible_saving(settings.checkpoints, process, on_node);
  check.saving_text = checkpoints_text(settings.checkpoints, check.saving, process);
  if (check.saving == CheckpointSaving::synchronous) process.snapshot = 0;
  check.shortfall = memory_shortfall(process, on_node);
  return check;
}

}  // namespace alpa
