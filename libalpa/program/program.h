#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/plan/plan.h"
#include "libalpa/sharding/conversion.h"
#include "libalpa/sharding/transfer.h"

namespace alpa {

/// How long the contents of a buffer last, and with that where it lies in the arena.
enum class Residence {
  state,        ///< from step to step
  step,         ///< within a step (summed gradients, scalars)
  micro_batch,  ///< from the forward to the backward of a micro-batch; one slot per micro-batch in flight
  segment,      ///< within one run of a segment; memory is shared
};

/// A tile of a value (or scratch memory) on every device of a stage.
struct Buffer {
  std::string name;
  int value = -1;  ///< of the graph; -1: scratch
  ShardingSpec layout;
  TensorType tile;
  Residence residence = Residence::segment;
  std::int64_t bytes = 0;   ///< of one slot, a multiple of kAlignment
  std::int64_t offset = 0;  ///< in the arena; slot k lies at offset + k * bytes
  int passed = 0;           ///< the tile is that of the device so many places before along `ring_axis`
  int ring_axis = -1;
  bool operator==(const Buffer&) const = default;
};

constexpr std::int64_t kAlignment = 256;

enum class Accumulate { overwrite, add, add_after_first_micro_batch };

/// The trainer fills the buffer with this input of the current micro-batch (or step).
struct Load {
  int input = 0;  ///< index in Graph::inputs
  int to = 0;
  bool operator==(const Load&) const = default;
};

/// A node's kernel on local tiles.
struct Compute {
  int node = 0;
  const OpDef* op = nullptr;
  Attributes attributes;  ///< local
  std::vector<int> operands, results;
  int workspace = -1;
  Accumulate accumulate = Accumulate::overwrite;
  bool operator==(const Compute&) const = default;
};

/// One step of a layout conversion over one mesh axis.
struct Convert {
  ConversionStep step;
  int from = 0, to = 0;
  int packed = -1, unpacked = -1;  ///< scratch buffers where the split or gathered dimension is not outermost
  bool operator==(const Convert&) const = default;
};

/// Every device along a mesh axis passes tiles on to the next one; the last to the first.
struct Shift {
  int axis = 0;
  std::vector<int> from, to;
  bool operator==(const Shift&) const = default;
};

/// This stage's side of Program::transfers[transfer].
struct Send {
  int transfer = 0;
  int from = 0;
  int packed = -1;  ///< scratch for the pieces, in their order
  int turns = 1;    ///< messages that `packed` has room for; they take turns
  bool operator==(const Send&) const = default;
};
struct Receive {
  int transfer = 0;
  int to = 0;
  int packed = -1;
  bool operator==(const Receive&) const = default;
};

/// Sums these scalars over all ranks of all stages.
struct GlobalSum {
  std::vector<int> scalars;
  int packed = -1;
  bool operator==(const GlobalSum&) const = default;
};

struct Zero {
  int to = 0;
  bool operator==(const Zero&) const = default;
};

using Instruction = std::variant<Load, Compute, Convert, Shift, Send, Receive, GlobalSum, Zero>;

enum class SegmentKind { forward, backward, update };
constexpr SegmentKind every_segment[] = {SegmentKind::forward, SegmentKind::backward, SegmentKind::update};
const char* segment_name(SegmentKind);

/// Buffers that an instruction reads and writes; scratch counts as written.
std::vector<int> buffers_read(const Instruction&);
std::vector<int> buffers_written(const Instruction&);

/// One run of a segment. The micro-batch's slot is micro_batch % slots; the update has none (-1).
struct ScheduledSegment {
  SegmentKind segment = SegmentKind::forward;
  int micro_batch = -1;
  bool operator==(const ScheduledSegment&) const = default;
};

/// What one stage's devices do in a step, the same on all of them: what differs by device (tiles' origins,
/// partners) follows from its mesh coordinate.
struct StageProgram {
  DeviceMesh mesh;
  std::vector<Buffer> buffers;
  std::vector<Instruction> segments[3];  ///< [SegmentKind]
  std::vector<ScheduledSegment> schedule;
  int slots = 1;  ///< most micro-batches in flight
  MemoryUse memory;
  std::vector<int> state_buffer;  ///< [state of the graph] -> buffer, -1: not on this stage
  int loss = -1;  ///< scalar buffer: sum of losses of the step, all stages, after the update segment
  int gradient_square_sum = -1;  ///< likewise
  std::vector<int> metrics;      ///< likewise, of each of the graph's

  const std::vector<Instruction>& segment(SegmentKind kind) const {
    return segments[static_cast<std::size_t>(kind)];
  }
};

/// A training step as data, read by the verifier, the simulator and the executor.
struct Program {
  std::vector<StageProgram> stages;
  std::vector<Transfer> transfers;
  std::vector<int> transfer_value;  ///< [transfer] -> graph value
  int micro_batches = 1;
  std::int64_t micro_batch_samples = 0;
  int devices_per_node = 1;
};

/// Numbers of collectives over devices in one step by kind ("all-reduce", "shift" ...), over all segments and
/// micro-batches of a stage; convert steps and shifts.
std::vector<std::pair<std::string, int>> collective_counts(const StageProgram&);

}  // namespace alpa
