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
  PreparedSegment(const Graph&, const Program&, int mesh, int segment, const std::vector<int>& coordinate,
                  int rank, Device&);

  /// Queues every instruction in order. Where `rows` is given, waits after each and adds a row.
  void run(const StepContext&, std::vector<TimelineRow>* rows);

  /// Queues every kernel once, and no message.
  void run_kernels(const StepContext&);

 private:
  struct Step {
    std::unique_ptr<PreparedInstruction> instruction;
    When when;
    TimelineRow row;  ///< all of it but the time and the micro-batch
  };
  std::vector<Step> steps_;
  int micro_batches_;
};

}  // namespace alpa
