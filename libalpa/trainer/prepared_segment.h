#pragma once
#include <memory>
#include <vector>

#include "libalpa/program/simulate.h"
#include "libalpa/trainer/steps.h"

namespace alpa {

/// The instructions of one segment made ready for one rank.
class PreparedSegment {
 public:
  /// Keeps references to graph and program.
  PreparedSegment(const Graph&, const Program&, int stage, SegmentKind, const std::vector<int>& coordinate,
                  int rank, Device&);

  /// Queues every instruction in order. Where `rows` is given, waits after each and adds a row.
  void run(const StepContext&, std::vector<TimelineRow>* rows);

  /// Queues every kernel once, and no message.
  void run_kernels(const StepContext&);

 private:
  std::vector<std::unique_ptr<PreparedInstruction>> steps_;
  std::vector<TimeKind> kinds_;
  int stage_;
  SegmentKind segment_;
};

}  // namespace alpa
