#include "libalpa/trainer/prepared_segment.h"

#include "libalpa/base/clock.h"

namespace alpa {
PreparedSegment::PreparedSegment(const Graph& graph, const Program& program, int stage, SegmentKind kind,
                                 const std::vector<int>& coordinate, int rank, Device& device)
    : stage_(stage), segment_(kind) {
  const StageProgram& mine = program.stages[static_cast<std::size_t>(stage)];
  const StepSite site{graph, program, mine, coordinate, rank, device};
  for (const Instruction& instruction : mine.segment(kind)) {
    kinds_.push_back(time_kind(instruction));
    steps_.push_back(std::visit([&](const auto& i) { return prepare(i, site); }, instruction));
  }
}

void PreparedSegment::run(const StepContext& rank, std::vector<TimelineRow>* rows) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    // Even to queue work waits, where much is queued behind a message that does not come.
    const DeviceWaits::Call call(rank.device->waits(), "the queueing of an instruction");
    if (!rows) {
      steps_[i]->run(rank);
      continue;
    }
    const double start = monotonic_s();
    steps_[i]->run(rank);
    rank.stream->synchronize();
    rows->push_back({stage_, segment_, rank.micro_batch, static_cast<int>(i), kinds_[i], start - rank.begin_s,
                     monotonic_s() - start});
  }
}

void PreparedSegment::run_kernels(const StepContext& rank) {
  for (const auto& step : steps_) step->run_kernels(rank);
}

}  // namespace alpa
