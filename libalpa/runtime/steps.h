#pragma once
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"
#include "libalpa/kernels/kernel.h"
#include "libalpa/kernels/make_kernel.h"
#include "libalpa/program/program.h"
#include "libalpa/program/step_samples.h"
#include "libalpa/runtime/emulated_clock.h"
#include "libalpa/runtime/step_inputs.h"

namespace alpa {

/// Which of its instructions a pass over a step runs.
enum class Pass {
  step,         ///< those of a step that follows another
  first_step,   ///< likewise, where nothing is left of a step before
  corrections,  ///< When::norm_binds alone, after the step that they are of
  rest,         ///< When::of_step_before alone, after the last step; or what has become of parameters
};

/// Rows of this rank that had an id, and all that it had, in gathers that leave out the others.
struct SentRows {
  std::atomic<std::int64_t> sent{0}, all{0};
};

/// How far a device is beside the servers that hold its states.
struct ExchangedSteps {
  std::int64_t pushed = 0;    ///< whose gradients it has sent
  std::int64_t reported = 0;  ///< whose scalars have been read
  float lead = 0;             ///< of these, those that are not in its parameters yet
};

/// What instructions need to know when they run. Everything pointed to is owned by the executor.
struct StepContext {
  Device* device = nullptr;
  Stream* stream = nullptr;
  DeviceMemory *arena = nullptr, *host_arena = nullptr;
  Communicator* world = nullptr;
  const std::vector<Communicator*>* channels = nullptr;        ///< of StageTransfers
  std::vector<std::unique_ptr<Communicator>>* axes = nullptr;  ///< of this rank's mesh
  Communicator* served = nullptr;  ///< all devices and servers, for what these help to add up
  const StepInputs* inputs = nullptr;
  const StepSamples* samples = nullptr;  ///< that the inputs have
  RunPoint point;
  int micro_batch = -1;
  Pass pass = Pass::step;
  std::string_view now;            ///< the instruction, for messages
  double begin_s = 0;              ///< monotonic time at which the step began
  EmulatedClock* clock = nullptr;  ///< of emulated devices
  SentRows* sent_rows = nullptr;
  ExchangedSteps* exchanged = nullptr;
};

/// One instruction made ready for one rank: its kernel prepared, its addresses and partners worked out.
/// Running it queues the work and allocates nothing on the device.
class PreparedInstruction {
 public:
  virtual ~PreparedInstruction() = default;

  /// Queues its work, or the first of it where it takes part in something with other ranks. Its run before is
  /// done.
  virtual void begin(const StepContext&) = 0;
  /// Goes on with what other ranks take part in; never waits.
  virtual Progress advance(const StepContext&) { return Progress::done; }
  /// Those ranks, while it is not done; null: there are none.
  virtual Communicator* partners(const StepContext&) const { return nullptr; }

  /// Queues those of its kernels alone, which do not talk to other ranks; the results mean nothing.
  virtual void run_kernels(const StepContext&) {}

  void run(const StepContext&);  ///< from begin to end
};

/// Where a step runs: one rank of a mesh.
struct StepSite {
  const Graph& graph;
  const Program& program;
  const MeshProgram& mesh;
  const std::vector<int>& coordinate;  ///< in the mesh
  DeviceIndex rank;
  Device& device;
};

// One for each instruction.
std::unique_ptr<PreparedInstruction> prepare(const Load&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Compute&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Convert&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Shift&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const OwnerCollective&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Serve&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Send&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Receive&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Unpack&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Exchange&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const GlobalSum&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Zero&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Copy&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Fetch&, const StepSite&);
std::unique_ptr<PreparedInstruction> prepare(const Offload&, const StepSite&);

/// A computation of an emulated device, which takes so long. `kernel`: what it runs meanwhile; null: nothing.
std::unique_ptr<PreparedInstruction> prepare_emulated(double seconds,
                                                      std::unique_ptr<PreparedInstruction> kernel);

/// A move of an emulated device between its memory and the host's, likewise, by the clock of its lane;
/// nothing is moved.
std::unique_ptr<PreparedInstruction> prepare_emulated_move(double seconds,
                                                           std::shared_ptr<EmulatedClock> lane);

/// A buffer as this rank sees it. The program outlives it.
struct BufferAddress {
  MemorySpace space = MemorySpace::device;
  std::int64_t offset = 0, slot_bytes = 0, slots = 1;  ///< slot_bytes: from one to the next
  TensorType tile;

  BufferAddress(const MeshProgram&, BufferIndex buffer);
  std::int64_t slot(const StepContext&) const;
  void* at(const StepContext&) const;
  std::int64_t bytes() const { return byte_count(tile); }

 private:
  const MeshProgram* program_;
  BufferIndex buffer_;
};

/// A box copied from one dense tensor into another.
class BoxCopy {
 public:
  BoxCopy(Device& device, const Box& from, const Box& to, const Shape& extent, DType dtype)
      : BoxCopy(device, from, to, extent, dtype, dtype) {}
  BoxCopy(Device& device, const Box& from, const Box& to, const Shape& extent, DType from_type, DType to_type)
      : kernel_(make_box_copy(device, from, to, extent, from_type, to_type)) {}

  void run(const StepContext&, void* from, void* to) const;

 private:
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace alpa
