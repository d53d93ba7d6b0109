#include "libalpa/trainer/run_needs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "libalpa/base/units.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/checkpoint/run_folder.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/tensor_shares.h"

namespace alpa {
ProcessMemory process_memory(const Program& training, const Graph& graph, std::int64_t arena,
                             std::int64_t input) {
  ProcessMemory memory;
  memory.arena = arena;
  memory.input = input;
  memory.buffers = TensorWriter::buffer_bytes;
  memory.snapshot = std::ranges::max(checkpoint_shares(graph, training));
  return memory;
}

std::int64_t exchanged_bytes(const Program& program) {
  std::int64_t most = 0;
  std::vector<const MeshProgram*> all;
  for (const MeshProgram& mesh : program.meshes) all.push_back(&mesh);
  if (program.servers) all.push_back(&*program.servers);
  for (const MeshProgram* const of : all) {
    const MeshProgram& mesh = *of;
    std::map<std::int64_t, std::int64_t> pieces;  // begin to end, the host's memory after the device's
    for (const Segment& segment : mesh.segments)
      for (const Instruction& instruction : segment.instructions) {
        if (is_computation(instruction) && !decides_what_is_sent(instruction)) continue;
        for (const BufferIndex b : buffers_touched(instruction)) {
          const Buffer& buffer = mesh.buffers[b];
          const std::int64_t begin =
              buffer.offset + (buffer.space == MemorySpace::host ? mesh.memory.total : 0);
          std::int64_t& end = pieces[begin];
          end = std::max(end, begin + buffer.slots * buffer.bytes);
        }
      }
    std::int64_t bytes = 0, counted = 0;
    for (const auto& [begin, end] : pieces) {
      bytes += std::max<std::int64_t>(end - std::max(begin, counted), 0);
      counted = std::max(counted, end);
    }
    most = std::max(most, bytes);
  }
  return most;
}

std::string memory_shortfall(const ProcessMemory& memory, std::int64_t there) {
  if (memory.total() <= there) return "";
  return fmt::format(
      "a rank takes {} of its node's memory (arena {}, samples {}, buffers for a checkpoint "
      "{}{}), "
      "{} is there for each",
      bytes_text(memory.total()), bytes_text(memory.arena), bytes_text(memory.input),
      bytes_text(memory.buffers),
      memory.snapshot > 0 ? fmt::format(", the copy that it is written from {}", bytes_text(memory.snapshot))
                          : "",
      bytes_text(there));
}

CheckpointSaving possible_saving(CheckpointSaving asked, const ProcessMemory& memory, std::int64_t there) {
  return memory.total() <= there ? asked : CheckpointSaving::synchronous;
}

std::string checkpoints_text(CheckpointSaving asked, CheckpointSaving possible, const ProcessMemory& memory) {
  const char* const how = possible == CheckpointSaving::asynchronous
                              ? "from a copy in its memory while training goes on"
                          : asked == CheckpointSaving::asynchronous
                              ? "while training waits: there is no room for a copy in its memory"
                              : "while training waits";
  return fmt::format("checkpoints: a rank writes up to {} ({} of buffers), {}", bytes_text(memory.snapshot),
                     bytes_text(memory.buffers), how);
}

std::int64_t saves_left(std::int64_t done, std::int64_t total, std::int64_t every) {
  if (done >= total) return 0;
  if (every <= 0) return 1;
  return total / every - done / every + (total % every == 0 ? 0 : 1);
}

std::int64_t most_new_checkpoints(std::int64_t saves, std::int64_t existing, std::int64_t keep) {
  if (keep <= 0) return saves;
  return std::min(saves, std::max<std::int64_t>(keep - existing, 0) + 1);
}

std::string DiskNeed::text() const {
  return fmt::format("'{}' is to hold {} of {} more at once, {} in all; {}", run_dir.string(),
                     count_text(checkpoints, "checkpoint"), bytes_text(checkpoint_bytes), bytes_text(bytes()),
                     free_bytes ? bytes_text(*free_bytes) + " is free there"
                                : "the file system does not say how much is free there");
}

DiskNeed disk_need(const Graph& graph, const Program& program, const std::filesystem::path& run_dir,
                   std::int64_t checkpoints) {
  const StateTerms terms = state_terms(graph, program);
  std::vector<TensorType> tensors;
  for (const StateIndex s : graph.states.indices())
    tensors.push_back(stored_type(graph, graph.states[s], terms[s]));
  return {run_dir, checkpoints, most_file_bytes(tensors), free_bytes(run_dir)};
}

DiskNeed disk_need_of_run(const Graph& graph, const Program& program, const TrainSettings& settings,
                          std::int64_t done, std::int64_t total) {
  const std::int64_t saves = saves_left(done, total, settings.checkpoint_every),
                     existing = std::ssize(checkpointed_steps(settings.run_dir));
  return disk_need(graph, program, settings.run_dir, most_new_checkpoints(saves, existing, settings.keep));
}

}  // namespace alpa
