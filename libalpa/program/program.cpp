#include "libalpa/program/program.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/overloaded.h"

namespace alpa {
namespace {

std::vector<BufferIndex> present(std::initializer_list<BufferIndex> buffers) {
  std::vector<BufferIndex> list;
  for (const BufferIndex b : buffers)
    if (b >= 0) list.push_back(b);
  return list;
}

bool sends(Exchange::Kind kind) { return kind == Exchange::Kind::push || kind == Exchange::Kind::publish; }

std::vector<BufferIndex> exchanged(const Exchange& exchange) {
  std::vector<BufferIndex> buffers = exchange.tensors;
  buffers.push_back(exchange.scalars);
  return buffers;
}

}  // namespace

bool is_in_turn(LaneKind kind, Overlap overlap) {
  switch (kind) {
    case LaneKind::compute:
      return true;
    case LaneKind::copy:
    case LaneKind::fetch:
    case LaneKind::offload:
    case LaneKind::collective:
      return overlap != Overlap::all;
    case LaneKind::send:
    case LaneKind::receive:
      return overlap == Overlap::none;
  }
  return true;
}

bool acts(When when, int micro_batch, int micro_batches) {
  switch (when) {
    case When::every_micro_batch:
      return true;
    case When::first_micro_batch:
      return micro_batch <= 0;
    case When::last_micro_batch:
      return micro_batch < 0 || micro_batch + 1 == micro_batches;
    case When::norm_binds:
      return false;
    case When::of_step_before:
      return micro_batch <= 0;
  }
  return true;
}

std::string segment_text(const Segment& segment) {
  const char* kind = segment_name(segment.kind);
  return segment.stage < 0 ? kind : fmt::format("{} of stage {}", kind, segment.stage);
}

std::string lane_name(const Lane& lane) {
  switch (lane.kind) {
    case LaneKind::compute:
      return "compute";
    case LaneKind::copy:
      return "copies";
    case LaneKind::fetch:
      return "fetches";
    case LaneKind::offload:
      return "offloads";
    case LaneKind::collective:
      return lane.axis < 0 ? "collectives of all ranks" : fmt::format("collectives of axis {}", lane.axis);
    case LaneKind::send:
      return fmt::format("sends to stage {} from {}", lane.to_stage, lane.from_stage);
    case LaneKind::receive:
      return fmt::format("receives of stage {} from {}", lane.to_stage, lane.from_stage);
  }
  return "";
}

std::vector<BufferIndex> buffers_read(const Instruction& instruction) {
  return std::visit(Overloaded{
                        [](const Load&) { return std::vector<BufferIndex>{}; },
                        [](const Compute& i) {
                          std::vector<BufferIndex> read = i.operands;
                          if (i.accumulate == Accumulate::add)
                            read.insert(read.end(), i.results.begin(), i.results.end());
                          return read;
                        },
                        [](const Convert& i) {
                          return present({i.from, i.row_ids});
                        },
                        [](const Shift& i) { return i.from; },
                        [](const OwnerCollective& i) { return i.reduces ? i.everywhere : i.owned; },
                        [](const Serve&) { return std::vector<BufferIndex>{}; },
                        [](const Send& i) { return present({i.from}); },
                        [](const Receive&) { return std::vector<BufferIndex>{}; },
                        [](const Unpack& i) { return present({i.packed}); },
                        [](const Exchange& i) { return sends(i.kind) ? exchanged(i) : present({}); },
                        [](const GlobalSum& i) { return i.scalars; },
                        [](const Zero&) { return std::vector<BufferIndex>{}; },
                        [](const Copy& i) { return present({i.from}); },
                        [](const Fetch& i) { return present({i.from}); },
                        [](const Offload& i) { return present({i.from}); },
                    },
                    instruction.body);
}

std::vector<BufferIndex> buffers_written(const Instruction& instruction) {
  return std::visit(Overloaded{
                        [](const Load& i) { return present({i.to}); },
                        [](const Compute& i) {
                          std::vector<BufferIndex> written = i.results;
                          if (i.workspace >= 0) written.push_back(i.workspace);
                          return written;
                        },
                        [](const Convert& i) {
                          return present({i.to, i.packed, i.unpacked});
                        },
                        [](const Shift& i) { return i.to; },
                        [](const OwnerCollective& i) { return i.reduces ? i.owned : i.everywhere; },
                        [](const Serve&) { return std::vector<BufferIndex>{}; },
                        [](const Send& i) { return present({i.packed}); },
                        [](const Receive& i) { return present({i.packed}); },
                        [](const Unpack& i) { return present({i.to}); },
                        [](const Exchange& i) {
                          std::vector<BufferIndex> written;
                          if (!sends(i.kind)) written = exchanged(i);
                          written.push_back(i.messages);
                          return written;
                        },
                        [](const GlobalSum& i) { return i.scalars; },
                        [](const Zero& i) { return present({i.to}); },
                        [](const Copy& i) { return present({i.to}); },
                        [](const Fetch& i) { return present({i.to}); },
                        [](const Offload& i) { return present({i.to}); },
                    },
                    instruction.body);
}

std::vector<BufferIndex> buffers_touched(const Instruction& instruction) {
  std::vector<BufferIndex> touched = buffers_read(instruction);
  const std::vector<BufferIndex> written = buffers_written(instruction);
  touched.insert(touched.end(), written.begin(), written.end());
  return touched;
}

std::vector<std::int64_t> owned_bytes(const MeshProgram& mesh, const OwnerCollective& collective) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(mesh.mesh.shape[collective.axis]));
  for (const BufferIndex b : collective.owned)
    bytes[static_cast<std::size_t>(mesh.buffers[b].owner.place)] += byte_count(mesh.buffers[b].tile);
  return bytes;
}

const char* owner_collective_name(bool reduces) {
  return reduces ? "reduce to owners" : "broadcast from owners";
}

const char* exchange_name(Exchange::Kind kind) {
  switch (kind) {
    case Exchange::Kind::push:
      return "push";
    case Exchange::Kind::collect:
      return "collect";
    case Exchange::Kind::publish:
      return "publish";
    case Exchange::Kind::take:
      return "take";
  }
  return "";
}

Owner owner_of(const MeshProgram& mesh, const Instruction& instruction) {
  if (std::holds_alternative<OwnerCollective>(instruction.body) ||
      std::holds_alternative<Exchange>(instruction.body))
    return {};
  for (const BufferIndex b : buffers_touched(instruction))
    if (const Owner owner = mesh.buffers[b].owner; !owner.is_everybody()) return owner;
  return {};
}

std::optional<Serve> served_by(const MeshProgram& mesh, const Instruction& instruction) {
  const auto* const convert = std::get_if<Convert>(&instruction.body);
  if (!convert || !convert->is_served) return std::nullopt;
  const TensorType sent = sent_type(convert->step, mesh.buffers[convert->from].tile);
  return Serve{convert->step.axis, element_count(sent.shape), sent.dtype, convert->step.maximum};
}

bool MeshProgram::has_owners() const {
  return std::ranges::any_of(buffers, [](const Buffer& buffer) { return !buffer.owner.is_everybody(); });
}

bool MeshProgram::keeps_step() const {
  const auto waits = [](const Instruction& instruction) {
    const auto* const convert = std::get_if<Convert>(&instruction.body);
    if (convert) return convert->step.kind != ConversionKind::slice;
    return std::holds_alternative<Shift>(instruction.body) ||
           std::holds_alternative<OwnerCollective>(instruction.body) ||
           std::holds_alternative<GlobalSum>(instruction.body);
  };
  return std::ranges::any_of(
      segments, [&](const Segment& segment) { return std::ranges::any_of(segment.instructions, waits); });
}

bool MeshProgram::has_sums_to_serve() const {
  return std::ranges::any_of(segments, [](const Segment& segment) {
    return std::ranges::any_of(segment.instructions, [](const Instruction& instruction) {
      return std::holds_alternative<Serve>(instruction.body);
    });
  });
}

std::vector<int> MeshProgram::fullest_coordinate() const {
  std::vector<int> coordinate;
  for (int axis = 0; axis < static_cast<int>(mesh.shape.size()); ++axis) {
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(mesh.shape[axis]));
    for (const Buffer& buffer : buffers)
      if (buffer.owner.axis == axis && buffer.residence == Residence::state && buffer.view_of < 0)
        bytes[static_cast<std::size_t>(buffer.owner.place)] += buffer.bytes;
    coordinate.push_back(static_cast<int>(std::ranges::max_element(bytes) - bytes.begin()));
  }
  return coordinate;
}

bool MeshProgram::has_several_stages() const {
  return std::ranges::any_of(segments,
                             [&](const Segment& s) { return s.stage >= 0 && s.stage != segments[0].stage; });
}

std::vector<int> turns_of_segments(const MeshProgram& mesh) {
  std::vector<int> turns(mesh.segments.size(), -1);
  int turn = 0;
  for (const SegmentRun& run : mesh.schedule)
    if (run.micro_batch == 0) turns[run.segment] = turn++;
  return turns;
}

bool is_computation(const Instruction& instruction) {
  return std::holds_alternative<Compute>(instruction.body) ||
         std::holds_alternative<Zero>(instruction.body) || std::holds_alternative<Copy>(instruction.body);
}

bool decides_what_is_sent(const Instruction& instruction) {
  const auto* const compute = std::get_if<Compute>(&instruction.body);
  return compute && compute->op->joins_rows;
}

bool is_move(const Instruction& instruction) {
  return std::holds_alternative<Fetch>(instruction.body) || std::holds_alternative<Offload>(instruction.body);
}

}  // namespace alpa
