#pragma once
#include <memory>
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"
#include "libalpa/kernels/kernel.h"
#include "libalpa/program/program.h"
#include "libalpa/program/simulate.h"

namespace alpa {

struct StepInputs;

/// What instructions need to know when they run. Everything pointed to is owned by the executor.
struct StepContext {
  Device* device = nullptr;
  Stream* stream = nullptr;
  DeviceMemory* arena = nullptr;
  Communicator* world = nullptr;
  std::vector<std::unique_ptr<Communicator>>* axes = nullptr;  ///< of this stage's mesh
  const StepInputs* inputs = nullptr;
  RunPoint point;
  int micro_batch = -1;
  int slot = 0;
  double begin_s = 0;  ///< monotonic time at which the step began
};

/// The instructions of one segment made ready for one rank: kernels prepared, addresses and partners worked
/// out.
class PreparedSegment {
 public:
  /// Keeps references to graph and program.
  PreparedSegment(const Graph&, const Program&, int stage, SegmentKind, const std::vector<int>& coordinate,
                  int rank, Device&);
  ~PreparedSegment();
  PreparedSegment(PreparedSegment&&) noexcept;

  /// Queues every instruction in order. Where `rows` is given, waits after each and adds a row.
  void run(const StepContext&, std::vector<TimelineRow>* rows);

  class Step;  ///< one instruction

 private:
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<TimeKind> kinds_;
  int stage_;
  SegmentKind segment_;
};

}  // namespace alpa
