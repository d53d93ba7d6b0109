#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "libalpa/base/index.h"
#include "libalpa/graph/graph.h"
#include "libalpa/plan/plan.h"
#include "libalpa/schedule/overlap.h"
#include "libalpa/schedule/schedule.h"
#include "libalpa/sharding/conversion.h"
#include "libalpa/sharding/transfer/transfer_route.h"

namespace alpa {

/// How long the contents of a buffer last, and with that where it lies in the arena.
enum class Residence {
  state,        ///< from step to step
  step,         ///< within a step (summed gradients, scalars)
  micro_batch,  ///< from one segment of a micro-batch to a later one; a slot for each micro-batch in between
  segment,      ///< within one run of a segment; memory is shared
};

using BufferIndex = Index<struct Buffer>;

/// The devices of a mesh at one place along an axis, which alone have something.
struct Owner {
  int axis = -1;  ///< -1: every device has it
  int place = 0;
  auto operator<=>(const Owner&) const = default;

  bool is_everybody() const { return axis < 0; }
  bool is_at(const std::vector<int>& coordinate) const {
    return is_everybody() || coordinate[static_cast<std::size_t>(axis)] == place;
  }
};

enum class MemorySpace {
  device,
  host,  ///< pinned, for what is moved out and in again
};

/// A tile of a value (or scratch memory) on every device of a mesh.
struct Buffer {
  std::string name;
  ValueIndex value;  ///< of the graph; -1: scratch
  ShardingSpec layout;
  TensorType tile;
  Residence residence = Residence::segment;
  std::int64_t bytes = 0;    ///< of one slot, a multiple of kAlignment
  std::int64_t slots = 1;    ///< which of them a run uses, MeshProgram::slot says
  std::vector<int> slot_of;  ///< [micro-batch] where buffers have slots in common; else m has slot m % slots
  BufferIndex slots_in;      ///< which has these slots too, and places them; -1: this one does
  std::int64_t offset = 0;   ///< in the arena of its space; slot k lies at offset + k * MeshProgram::stride
  int ring_hops = 0;         ///< the tile is that of the device so many places before along `ring_axis`
  int ring_axis = -1;
  MemorySpace space = MemorySpace::device;
  BufferIndex view_of;           ///< its slots lie in those of this buffer; -1: in memory of their own
  std::int64_t view_offset = 0;  ///< in bytes, where they begin there
  /// Others have no memory of it, or in a view what is there means nothing; what touches it runs there alone
  /// (OwnerCollective apart).
  Owner owner;
  std::int64_t first_row = 0;  ///< of what has an owner: of the tile of its layout it has the rows from here
  bool operator==(const Buffer&) const = default;
};

enum class Accumulate { overwrite, add, add_after_first_micro_batch };

/// The trainer fills the buffer with this input of the current micro-batch (or step).
struct Load {
  int input = 0;  ///< index in Graph::inputs
  BufferIndex to;
  bool operator==(const Load&) const = default;
};

/// A node's kernel on local tiles.
struct Compute {
  NodeIndex node{0};
  const OpDef* op = nullptr;
  Attributes attributes;  ///< local
  std::vector<BufferIndex> operands, results;
  BufferIndex workspace;  ///< -1: none, here and below
  Accumulate accumulate = Accumulate::overwrite;
  bool operator==(const Compute&) const = default;
};

/// One step of a layout conversion over one mesh axis.
struct Convert {
  ConversionStep step;
  BufferIndex from, to;
  BufferIndex packed, unpacked;  ///< scratch buffers where the split or gathered dimension is not outermost
  BufferIndex row_ids;           ///< of rows that have ids, gathered (ConversionStep::sent_share)
  bool is_served = false;        ///< an all-reduce over all devices, in which Program::servers help
  bool operator==(const Convert&) const = default;
};

/// Every device along a mesh axis passes tiles on to the next one; the last to the first.
struct Shift {
  int axis = 0;
  std::vector<BufferIndex> from, to;
  bool operator==(const Shift&) const = default;
};

/// This mesh's side of Program::transfers[transfer].
struct Send {
  int transfer = 0;
  BufferIndex from;
  BufferIndex packed;  ///< the pieces, in their order; a slot for each message that may be on its way
  bool operator==(const Send&) const = default;
};
struct Receive {
  int transfer = 0;
  BufferIndex packed;  ///< likewise
  bool operator==(const Receive&) const = default;
};

/// What has been received becomes a tile.
struct Unpack {
  int transfer = 0;
  BufferIndex packed;
  BufferIndex to;
  bool operator==(const Unpack&) const = default;
};

struct Copy {
  BufferIndex from, to;
  bool operator==(const Copy&) const = default;
};

/// From host memory into the device's.
struct Fetch {
  BufferIndex from, to;
  bool operator==(const Fetch&) const = default;
};

/// From the device's memory into the host's.
struct Offload {
  BufferIndex from, to;
  bool operator==(const Offload&) const = default;
};

/// Along a mesh axis, in place: each of `owned` becomes at its owner the sum of what all devices have there
/// (`reduces`), or goes from there to all of them. They are views of `everywhere`, and all of that.
struct OwnerCollective {
  bool reduces = true;
  int axis = 0;
  std::vector<BufferIndex> owned, everywhere;
  bool operator==(const OwnerCollective&) const = default;
};

struct MeshProgram;
/// [place along its axis] What that owns of it.
std::vector<std::int64_t> owned_bytes(const MeshProgram&, const OwnerCollective&);
const char* owner_collective_name(bool reduces);  ///< "reduce to owners", "broadcast from owners"

/// A server's part in an all-reduce of a mesh (Convert::is_served); it needs no memory of the arena.
struct Serve {
  int axis = 0;  ///< of the mesh
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  bool maximum = false;
  bool operator==(const Serve&) const = default;
};

/// What servers that hold the states (Plan::staleness) and the devices of the mesh send each other. Devices
/// push the gradients of a step, and servers collect those of all; servers publish what has become of the
/// parameters, and devices take that at the beginning of a step, if it is there, and wait for what is older
/// than the bound. What a rank has sent may be on its way for several steps. A message has all rows of a
/// server; that of the first has the scalars too.
struct Exchange {
  enum class Kind { push, collect, publish, take };
  Kind kind = Kind::push;
  std::vector<BufferIndex> tensors;  ///< gradients, or parameters, in parts of rows
  std::vector<int> server;           ///< [tensor] that holds it
  BufferIndex scalars;               ///< what GlobalSum adds up elsewhere; the last is MeshProgram::lead
  BufferIndex messages;              ///< memory for those on their way
  bool operator==(const Exchange&) const = default;
};
const char* exchange_name(Exchange::Kind);

/// Sums these scalars over all ranks of all meshes and of servers: they are the first views of `packed`, one
/// after another.
struct GlobalSum {
  std::vector<BufferIndex> scalars;
  BufferIndex packed;
  bool operator==(const GlobalSum&) const = default;
};

struct Zero {
  BufferIndex to;
  bool operator==(const Zero&) const = default;
};

using InstructionBody = std::variant<Load, Compute, Convert, Shift, OwnerCollective, Serve, Send, Receive,
                                     Unpack, Exchange, GlobalSum, Zero, Copy, Fetch, Offload>;

/// In which runs of its segment an instruction does something.
enum class When {
  every_micro_batch,
  first_micro_batch,
  last_micro_batch,
  /// In the update, once all ranks know that the gradient norm binds (UpdateOrder::before_norm). These
  /// instructions come last in it, in a second pass over the step.
  norm_binds,
  /// For the step before (UpdateOrder::next_forward), in the forward of the first micro-batch, and in the
  /// update. In the first step there is nothing to do, and after the last one these alone are left.
  of_step_before,
};
/// In a step whose norm does not bind, and that follows another.
bool acts(When, int micro_batch, int micro_batches);

struct Instruction {
  InstructionBody body;
  int lane = 0;  ///< index in MeshProgram::lanes
  When when = When::every_micro_batch;
  /// Instructions of the same run that it waits for only because a buffer of its own lies where theirs did:
  /// where memory is short, lanes do not run ahead of each other.
  std::vector<int> after = {};
  bool operator==(const Instruction&) const = default;
};

/// What instructions queue in: those of one lane run one after another, in their order; those of different
/// lanes whenever what they wait for is done (program/order/dependences).
enum class LaneKind { compute, copy, fetch, offload, collective, send, receive };
struct Lane {
  LaneKind kind = LaneKind::compute;
  int axis = -1;                    ///< of a collective; -1: all ranks
  StageIndex from_stage, to_stage;  ///< of messages
  bool operator==(const Lane&) const = default;
};
std::string lane_name(
    const Lane&);  ///< "compute", "copies", "collectives of axis 0", "sends to stage 1 from 0"

/// Buffers that an instruction reads and writes; scratch counts as written.
std::vector<BufferIndex> buffers_read(const Instruction&);
std::vector<BufferIndex> buffers_written(const Instruction&);
std::vector<BufferIndex> buffers_touched(const Instruction&);  ///< those it reads, then those it writes

/// Whose devices alone run an instruction: those that have what it touches.
Owner owner_of(const MeshProgram&, const Instruction&);

/// What servers do while a mesh runs this instruction of its own; none: nothing.
std::optional<Serve> served_by(const MeshProgram&, const Instruction&);

/// Kernels of the device alone, which an emulated one does not run.
bool is_computation(const Instruction&);
/// Of these what says how much others send (rows of ids that differ): an emulated device runs it too.
bool decides_what_is_sent(const Instruction&);
/// Between the memories of a device and of its host.
bool is_move(const Instruction&);

/// What a mesh does for one micro-batch of a stage, or (update) once at the end of a step.
struct Segment {
  StageIndex stage{0};  ///< -1: all stages of the mesh (the update)
  SegmentKind kind = SegmentKind::forward;
  std::vector<Instruction> instructions;
  bool operator==(const Segment&) const = default;
};

std::string segment_text(const Segment&);  ///< "backward of stage 1", "update"

/// One run of a segment.
struct SegmentRun {
  int segment = 0;       ///< index in MeshProgram::segments
  int micro_batch = -1;  ///< the update has none
  bool operator==(const SegmentRun&) const = default;
};

/// What the devices of a mesh do in a step, the same on all of them: what differs by device (tiles' origins,
/// partners) follows from its mesh coordinate.
struct MeshProgram {
  DeviceMesh mesh;
  std::vector<Lane> lanes{Lane{}};  ///< the first is the compute lane
  Indexed<BufferIndex, Buffer> buffers;
  std::vector<Segment> segments;
  std::vector<SegmentRun> schedule;
  MemoryUse memory;
  Indexed<StateIndex, BufferIndex> state_buffer;              ///< -1: not on this mesh, or in parts
  Indexed<StateIndex, std::vector<BufferIndex>> state_parts;  ///< of states that have owners: rows after rows
  BufferIndex loss;  ///< a scalar: sum of losses of the step, all stages, after the update segment
  BufferIndex gradient_square_sum;   ///< likewise
  std::vector<BufferIndex> metrics;  ///< likewise, of each of the graph's
  /// By how many steps the fastest device was ahead of what all have pushed, at most; -1: they keep step.
  BufferIndex lead;

  /// What a buffer lies in: itself, unless it is a view.
  BufferIndex whole(BufferIndex b) const { return buffers[b].view_of < 0 ? b : buffers[b].view_of; }
  std::int64_t stride(BufferIndex b) const { return buffers[whole(b)].bytes; }  ///< bytes from slot to slot
  /// The buffer that places its slots: itself, or the one that it has them in common with.
  BufferIndex slots_of(BufferIndex b) const {
    const BufferIndex of = buffers[whole(b)].slots_in;
    return of < 0 ? whole(b) : of;
  }
  /// Which of its slots a run for that micro-batch uses; the update (-1) uses the first.
  std::int64_t slot(BufferIndex b, int micro_batch) const {
    const Buffer& in = buffers[whole(b)];
    const auto m = static_cast<std::size_t>(std::max(micro_batch, 0));
    return in.slot_of.empty() ? static_cast<std::int64_t>(m) % in.slots : in.slot_of[m];
  }

  const Segment& segment_of(const SegmentRun& run) const { return segments[run.segment]; }
  bool has_several_stages() const;

  bool has_owners() const;  ///< of any buffer
  bool keeps_step()
      const;  ///< whether its devices wait for each other within a step: share more than Exchange
  bool has_sums_to_serve() const;  ///< Serve

  /// [axis] The place whose devices own the most bytes of states, the first of these: what is predicted of a
  /// mesh is predicted of the device there, whose timeline is the mesh's.
  std::vector<int> fullest_coordinate() const;
};

/// A value's way between two meshes. Messages between two stages travel in the order in which they are sent;
/// those of other stages of the same meshes do not wait for them.
struct StageTransfer : Transfer {
  ValueIndex value{0};                    ///< of the graph
  StageIndex from_stage{0}, to_stage{0};  ///< of the receiving mesh the first stage that needs it
  TransferWay way;
  TransferRoute route;
  int channel = 0;  ///< that its messages go by; lanes whose messages could be mistaken have others
};

/// A training step as data, read by the verifier, the simulator and the executor.
struct Program {
  Indexed<MeshIndex, MeshProgram> meshes;
  /// What ranks do that have no stage (Cluster::servers): they help to add up, or hold the states. They come
  /// after the devices of all meshes.
  std::optional<MeshProgram> servers = {};
  int staleness = Plan::kSynchronous;  ///< of the plan; results are known so many steps later and one
  std::vector<StageTransfer> transfers;
  int micro_batches = 1;
  std::int64_t micro_batch_samples = 0;
  int devices_per_node = 1;
  bool corrects_updates = false;  ///< has instructions for When::norm_binds
  bool defers_updates = false;    ///< has instructions for When::of_step_before; steps may overlap each other
  Overlap overlap = Overlap::none;

  /// What a place runs (place_of): -1 are the servers.
  const MeshProgram& at(MeshIndex mesh) const { return mesh < 0 ? *servers : meshes[mesh]; }
  bool has_states_at_servers() const { return staleness >= 0; }
};

/// Whether what queues in a lane is done in turn with the computation of its mesh.
bool is_in_turn(LaneKind, Overlap);

/// [segment] its place among the runs of the first micro-batch; -1: the update.
std::vector<int> turns_of_segments(const MeshProgram&);

}  // namespace alpa
