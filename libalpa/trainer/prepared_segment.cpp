#include "libalpa/trainer/prepared_segment.h"

#include "libalpa/base/clock.h"

namespace alpa {

PreparedSegment::PreparedSegment(const Graph& graph, const Program& program, int mesh, int segment,
                                 const std::vector<int>& coordinate, int rank, Device& device)
    : micro_batches_(program.micro_batches) {
  const MeshProgram& mine = program.meshes[static_cast<std::size_t>(mesh)];
  const StepSite site{graph, program, mine, coordinate, rank, device};
  for (const Instruction& instruction : mine.segments[static_cast<std::size_t>(segment)].instructions)
    steps_.push_back(
        {std::visit([&](const auto& i) { return prepare(i, site); }, instruction.body),
         instruction.when,
         {mesh, segment, -1, static_cast<int>(steps_.size()), instruction.lane, time_kind(instruction)}});
}

void PreparedSegment::run(const StepContext& rank, std::vector<TimelineRow>* rows) {
  for (const Step& step : steps_) {
    if (!acts(step.when, rank.micro_batch, micro_batches_)) continue;
    // Even to queue work waits, where much is queued behind a message that does not come.
    const DeviceWaits::Call call(rank.device->waits(), "the queueing of an instruction");
    if (!rows) {
      step.instruction->run(rank);
      continue;
    }
    const double start = monotonic_s();
    step.instruction->run(rank);
    rank.stream->synchronize();
    rows->push_back(step.row);
    rows->back().micro_batch = rank.micro_batch;
    rows->back().start_s = start - rank.begin_s;
    rows->back().duration_s = monotonic_s() - start;
  }
}

void PreparedSegment::run_kernels(const StepContext& rank) {
  for (const Step& step : steps_) step.instruction->run_kernels(rank);
}

}  // namespace alpa
