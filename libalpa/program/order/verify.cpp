#include "libalpa/program/order/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "libalpa/program/order/races.h"
#include "libalpa/program/order/served_sums.h"
#include "libalpa/program/order/step_walk.h"
#include "libalpa/program/order/wrong_program.h"

namespace alpa {
namespace {

/// Every micro-batch passes the segments of a stage in the order in which they are listed, once; the update
/// is last.
void check_schedule(const MeshProgram& program, MeshIndex mesh, int micro_batches) {
  const auto& runs = program.schedule;
  for (const SegmentRun& run : runs)
    if (run.segment < 0 || run.segment >= std::ssize(program.segments))
      refuse_program(mesh, fmt::format("its schedule has a segment {}", run.segment));
  const auto is_update = [&](int segment) { return program.segments[segment].kind == SegmentKind::update; };
  if (runs.empty() || !is_update(runs.back().segment) || runs.back().micro_batch != -1)
    refuse_program(mesh, "its schedule does not end with the update");
  std::vector<int> before(program.segments.size(), -1);  // the segment before it of the same stage
  std::map<int, int> last_of_stage;
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s) {
    if (is_update(s)) continue;
    const auto [last, first] = last_of_stage.insert({program.segments[s].stage, s});
    if (!first) before[s] = std::exchange(last->second, s);
  }
  std::vector<int> done(program.segments.size());  // micro-batches: sums and slots go by their order
  for (std::size_t r = 0; r + 1 < runs.size(); ++r) {
    const auto [segment, m] = runs[r];
    const std::string name = segment_text(program.segment_of(runs[r]));
    if (m < 0 || m >= micro_batches || is_update(segment))
      refuse_program(mesh, fmt::format("its schedule has {} of micro-batch {}", name, m));
    const int earlier = before[segment];
    if (done[segment]++ != m || (earlier >= 0 && done[earlier] <= m))
      refuse_program(mesh, fmt::format("its schedule has {} of micro-batch {} out of turn", name, m));
  }
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s)
    if (const int runs_of = done[s]; !is_update(s) && runs_of != micro_batches)
      refuse_program(mesh, fmt::format("its schedule leaves {} of micro-batch {} out",
                                       segment_text(program.segments[s]), runs_of));
}

/// What is for When::norm_binds alone is in programs that say so, and last in the update: all else of a step
/// has run before it.
void check_corrections(const MeshProgram& program, MeshIndex mesh, bool corrects_updates) {
  for (const Segment& segment : program.segments) {
    bool corrects = false;
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const bool binds = segment.instructions[i].when == When::norm_binds;
      if (binds == corrects) continue;
      if (!binds || !corrects_updates || segment.kind != SegmentKind::update)
        refuse_program(
            mesh, fmt::format("instruction {} of the {} {} where the norm binds", i, segment_text(segment),
                              binds ? "is out of place" : "follows what is"));
      corrects = true;
    }
  }
}

/// What is for the step before is in forwards and updates of programs that say so.
void check_deferred(const MeshProgram& program, MeshIndex mesh, bool defers_updates) {
  for (const Segment& segment : program.segments)
    for (std::size_t i = 0; i < segment.instructions.size(); ++i)
      if (segment.instructions[i].when == When::of_step_before &&
          (!defers_updates || (segment.kind != SegmentKind::forward && segment.kind != SegmentKind::update)))
        refuse_program(mesh, fmt::format("instruction {} of the {} of the step before is out of place", i,
                                         segment_text(segment)));
}

/// A view lies within each slot of what it is a view of, and lasts as long.
void check_view(const MeshProgram& program, MeshIndex mesh, BufferIndex b) {
  const Buffer& view = program.buffers[b];
  if (view.view_of >= std::ssize(program.buffers))
    refuse_program(mesh, fmt::format("{} is a view of buffer {}", buffer_words(program, b), view.view_of));
  const Buffer& of = program.buffers[view.view_of];
  const std::int64_t begin = view.offset - of.offset;
  if (of.view_of >= 0 || begin < 0 || begin + view.bytes > of.bytes || view.slots != of.slots ||
      view.space != of.space || view.residence != of.residence)
    refuse_program(mesh, fmt::format("{} is not part of {}", buffer_words(program, b),
                                     buffer_words(program, view.view_of)));
}

/// What has slots in common with another buffer lies where that does; each micro-batch has one of them.
void check_slots(const MeshProgram& program, MeshIndex mesh, BufferIndex b, int micro_batches) {
  const Buffer& buffer = program.buffers[b];
  if (buffer.slots < 1) refuse_program(mesh, fmt::format("buffer {} has no slot", b));
  if (buffer.slot_of.empty() && buffer.slots_in < 0) return;
  const auto is_slot = [&](int slot) { return slot >= 0 && slot < buffer.slots; };
  if (buffer.residence != Residence::micro_batch || buffer.view_of >= 0 ||
      std::ssize(buffer.slot_of) < micro_batches || !std::ranges::all_of(buffer.slot_of, is_slot))
    refuse_program(mesh, fmt::format("{} has no slot for each micro-batch", buffer_words(program, b)));
  if (buffer.slots_in < 0) return;
  if (buffer.slots_in >= std::ssize(program.buffers))
    refuse_program(mesh,
                   fmt::format("{} is in slots of buffer {}", buffer_words(program, b), buffer.slots_in));
  const Buffer& in = program.buffers[buffer.slots_in];
  if (in.slot_of.empty() || in.slots_in >= 0 || in.slots != buffer.slots || in.bytes != buffer.bytes ||
      in.offset != buffer.offset || in.space != buffer.space)
    refuse_program(mesh, fmt::format("{} is not in the slots of {}", buffer_words(program, b),
                                     buffer_words(program, buffer.slots_in)));
}

/// What touches something of an owner touches nothing of another: it runs there alone. An OwnerCollective has
/// all of what every device has of it, each element in one piece.
void check_owners(const MeshProgram& program, MeshIndex mesh) {
  const auto is_axis = [&](int axis) { return axis >= 0 && axis < std::ssize(program.mesh.shape); };
  for (const BufferIndex b : program.buffers.indices()) {
    const Owner& owner = program.buffers[b].owner;
    if (!owner.is_everybody() &&
        (!is_axis(owner.axis) || owner.place < 0 || owner.place >= program.mesh.shape[owner.axis]))
      refuse_program(mesh, fmt::format("{} is of nobody", buffer_words(program, b)));
  }
  for (const std::vector<BufferIndex>& parts : program.state_parts) {
    std::int64_t row = 0;
    for (const BufferIndex b : parts) {
      const Buffer& part = program.buffers[b];
      if (part.residence != Residence::state || part.owner.is_everybody() || part.first_row != row)
        refuse_program(
            mesh, fmt::format("{} does not begin where the part before it ends", buffer_words(program, b)));
      row += part.tile.shape[0];
    }
  }
  const auto check = [&](const OwnerCollective& collective) {
    std::map<BufferIndex, std::vector<std::pair<std::int64_t, std::int64_t>>> pieces;  // by what they lie in
    for (const BufferIndex b : collective.owned) {
      const Buffer& piece = program.buffers[b];
      if (piece.owner.axis != collective.axis)
        refuse_program(
            mesh, fmt::format("{} has no owner along axis {}", buffer_words(program, b), collective.axis));
      pieces[program.whole(b)].emplace_back(piece.view_offset, piece.view_offset + byte_count(piece.tile));
    }
    for (const BufferIndex b : collective.everywhere) {
      auto& of = pieces[program.whole(b)];
      std::ranges::sort(of);
      std::int64_t end = 0;
      for (const auto& [begin, piece_end] : of) end = begin == end ? piece_end : -1;
      if (program.buffers[b].view_of >= 0 || end != byte_count(program.buffers[b].tile))
        refuse_program(mesh, fmt::format("the owners of {} have not all of it, or some twice",
                                         buffer_words(program, b)));
    }
    std::set<BufferIndex> wholes(collective.everywhere.begin(), collective.everywhere.end());
    if (pieces.size() != wholes.size() || wholes.size() != collective.everywhere.size())
      refuse_program(mesh, "owners have something that not every device has");
  };
  for (const Segment& segment : program.segments)
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const Instruction& instruction = segment.instructions[i];
      if (const auto* collective = std::get_if<OwnerCollective>(&instruction.body)) {
        check(*collective);
        continue;
      }
      if (std::holds_alternative<Exchange>(instruction.body)) continue;  // each server runs its part of it
      const Owner owner = owner_of(program, instruction);
      for (const BufferIndex b : buffers_touched(instruction))
        if (const Owner& other = program.buffers[b].owner; !other.is_everybody() && other != owner)
          refuse_program(mesh, fmt::format("instruction {} of the {} touches what two devices own", i,
                                           segment_text(segment)));
      if (!owner.is_everybody() && !is_computation(instruction))
        refuse_program(
            mesh, fmt::format("instruction {} of the {} is not for the owner of what it touches alone", i,
                              segment_text(segment)));
    }
}

/// Where the buffers lie that the device there has: within the arena, and none that outlasts a segment
/// shares a byte with another that is no view of it, nor has slots of it. Those of one segment may, which
/// check_sharing() looks at.
void check_places(const MeshProgram& program, MeshIndex mesh, int micro_batches,
                  const std::vector<int>& coordinate) {
  Indexed<BufferIndex, bool> used(program.buffers.size());
  for (const BufferIndex b : used.indices()) used[b] = program.buffers[b].residence != Residence::segment;
  for (const Segment& segment : program.segments)
    for (const Instruction& instruction : segment.instructions)
      for (const BufferIndex b : buffers_touched(instruction)) used[b] = true;
  std::vector<BufferIndex> order;
  for (const BufferIndex b : program.buffers.indices()) {
    const Buffer& buffer = program.buffers[b];
    if (!used[b] || !buffer.owner.is_at(coordinate)) continue;
    check_slots(program, mesh, b, micro_batches);
    if (buffer.view_of >= 0) {
      check_view(program, mesh, b);
      continue;
    }
    const std::int64_t arena =
        buffer.space == MemorySpace::device ? program.memory.total : program.memory.host;
    if (buffer.offset < 0 || buffer.offset + buffer.bytes * buffer.slots > arena)
      refuse_program(mesh, fmt::format("{} lies outside the arena", buffer_words(program, b)));
    if (buffer.slots_in < 0) order.push_back(b);
  }
  std::ranges::sort(order, {}, [&](BufferIndex b) {
    return std::pair(program.buffers[b].space, program.buffers[b].offset);
  });
  const auto end = [&](BufferIndex b) {
    return program.buffers[b].offset + program.buffers[b].bytes * program.buffers[b].slots;
  };
  const auto in_segment = [&](BufferIndex b) { return program.buffers[b].residence == Residence::segment; };
  std::optional<BufferIndex> reaching, lasting;  // of those before: that which ends last, of all and of these
  std::optional<MemorySpace> space;
  for (const BufferIndex b : order) {
    if (space != program.buffers[b].space) reaching = lasting = std::nullopt;
    space = program.buffers[b].space;
    const std::optional<BufferIndex>& other = in_segment(b) ? lasting : reaching;
    if (other && end(*other) > program.buffers[b].offset)
      refuse_program(mesh, fmt::format("{} and {} share memory", buffer_words(program, *other),
                                       buffer_words(program, b)));
    if (!reaching || end(b) > end(*reaching)) reaching = b;
    if (!in_segment(b) && (!lasting || end(b) > end(*lasting))) lasting = b;
  }
}

/// At every place of the axes along which something has owners.
void check_places(const MeshProgram& program, MeshIndex mesh, int micro_batches) {
  std::vector<std::vector<int>> coordinates{std::vector<int>(program.mesh.shape.size(), 0)};
  for (int axis = 0; axis < static_cast<int>(program.mesh.shape.size()); ++axis) {
    const auto has_owners = [&](const Buffer& buffer) { return buffer.owner.axis == axis; };
    if (std::ranges::none_of(program.buffers, has_owners)) continue;
    std::vector<std::vector<int>> more;
    for (const std::vector<int>& coordinate : coordinates)
      for (int place = 0; place < program.mesh.shape[axis]; ++place) {
        more.push_back(coordinate);
        more.back()[static_cast<std::size_t>(axis)] = place;
      }
    coordinates = std::move(more);
  }
  for (const std::vector<int>& coordinate : coordinates)
    check_places(program, mesh, micro_batches, coordinate);
}

/// Buffers of one segment share bytes only where all that is done with one surely comes before all that is
/// done with the other. At views of one, check_races looks.
void check_sharing(const MeshProgram& program, MeshIndex mesh, int segment, const Dependences& waits) {
  const std::vector<Instruction>& instructions = program.segments[segment].instructions;
  std::map<BufferIndex, std::vector<int>> touched;  // instructions
  for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
    const Instruction& instruction = instructions[i];
    for (const BufferIndex b : buffers_touched(instruction))
      if (program.buffers[b].residence == Residence::segment)
        if (std::vector<int>& of = touched[program.whole(b)]; of.empty() || of.back() != i) of.push_back(i);
  }
  const RunOrder order(program, waits, segment);
  const auto all_before = [&](const std::vector<int>& some, const std::vector<int>& others) {
    return std::ranges::all_of(others, [&](int then) {
      return std::ranges::all_of(some, [&](int first) { return order.before(first, then); });
    });
  };
  std::vector<BufferIndex> by_place;
  for (const auto& [b, uses] : touched) by_place.push_back(b);
  const auto& buffers = program.buffers;
  const auto place = [&](BufferIndex b) { return std::pair(buffers[b].space, buffers[b].offset); };
  std::ranges::sort(by_place, {}, place);
  for (std::size_t x = 0; x < by_place.size(); ++x) {
    const Buffer& a = buffers[by_place[x]];
    for (std::size_t y = x + 1; y < by_place.size(); ++y) {
      if (place(by_place[y]) >= std::pair(a.space, a.offset + a.bytes)) break;
      const std::vector<int>&some = touched[by_place[x]], &others = touched[by_place[y]];
      if (!all_before(some, others) && !all_before(others, some))
        refuse_program(
            mesh, fmt::format("{} and {} share memory in {}, and nothing keeps instructions {} and {} apart",
                              buffer_words(program, by_place[x]), buffer_words(program, by_place[y]),
                              segment_text(program.segments[segment]), some.front(), others.front()));
    }
  }
}

/// Every transfer arrives as often as it leaves, and in the same order on each channel between two meshes.
void check_messages(const Program& program) {
  // By the meshes and the channel.
  std::map<std::tuple<MeshIndex, MeshIndex, int>, std::vector<std::pair<int, int>>> sent, received;
  const auto mesh_of = [&](const DeviceMesh& mesh) {
    return MeshIndex(std::ranges::find(program.meshes, mesh.first_device,
                                       [](const MeshProgram& m) { return m.mesh.first_device; }) -
                     program.meshes.begin());
  };
  for (const MeshIndex m : program.meshes.indices())
    for (const SegmentRun& run : program.meshes[m].schedule) {
      const std::vector<Instruction>& instructions = program.meshes[m].segment_of(run).instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        const auto note = [&](auto& list, int transfer) {
          if (transfer < 0 || transfer >= std::ssize(program.transfers))
            refuse_program(m, instruction_words(program.meshes[m], run, i) +
                                  fmt::format(" is of no transfer: {}", transfer));
          const StageTransfer& t = program.transfers[transfer];
          list[{mesh_of(t.from_mesh), mesh_of(t.to_mesh), t.channel}].push_back({transfer, run.micro_batch});
        };
        if (const auto* send = std::get_if<Send>(&instructions[i].body)) note(sent, send->transfer);
        if (const auto* receive = std::get_if<Receive>(&instructions[i].body))
          note(received, receive->transfer);
      }
    }
  std::vector<std::pair<int, int>> times(program.transfers.size());  // sent and received
  for (const auto& [ends, messages] : sent)
    for (const auto& message : messages) ++times[message.first].first;
  for (const auto& [ends, messages] : received)
    for (const auto& message : messages) ++times[message.first].second;
  for (std::size_t t = 0; t < times.size(); ++t) {
    const auto [leaves, arrives] = times[t];
    if (leaves == arrives) continue;
    const Transfer& transfer = program.transfers[t];
    refuse_program(mesh_of(leaves < arrives ? transfer.to_mesh : transfer.from_mesh),
                   fmt::format("transfer {} is sent {} times and received {} times", t, leaves, arrives));
  }
  for (const auto& [ends, messages] : received)
    for (std::size_t k = 0; k < messages.size(); ++k)
      if (const auto& other = sent[ends][k]; messages[k] != other)
        refuse_program(std::get<1>(ends),
                       fmt::format("it receives transfer {} of micro-batch {} where {} of {} arrives",
                                   messages[k].first, messages[k].second, other.first, other.second));
}

/// What devices pass on has come to them by an earlier message, and where lanes overlap no two that pass on
/// in a mesh share a channel.
void check_routes(const Program& program) {
  std::map<std::pair<DeviceIndex, int>, std::pair<StageIndex, StageIndex>> lanes;  // by mesh and channel
  for (std::size_t t = 0; t < program.transfers.size(); ++t) {
    const StageTransfer& transfer = program.transfers[t];
    const auto refuse = [&](const std::string& what) {
      const auto at = std::ranges::find(program.meshes, transfer.to_mesh.first_device,
                                        [](const MeshProgram& m) { return m.mesh.first_device; });
      refuse_program(MeshIndex(at - program.meshes.begin()), fmt::format("transfer {}: {}", t, what));
    };
    const std::vector<TransferMessage>& messages = transfer.route.messages;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const TransferMessage& message = messages[m];
      if (!message.is_passed_on()) continue;
      if (message.after >= static_cast<int>(m))
        refuse(fmt::format("message {} passes on what comes by {}", m, message.after));
      const TransferMessage& before = messages[message.after];
      if (before.to != message.from || before.task != message.task || before.begin > message.begin ||
          before.end < message.end)
        refuse(fmt::format("message {} passes on what message {} does not bring", m, message.after));
    }
    if (program.overlap == Overlap::none || !passes_on(transfer.route)) continue;
    const std::pair ends{transfer.from_stage, transfer.to_stage};
    const auto [lane, is_new] = lanes.try_emplace({transfer.to_mesh.first_device, transfer.channel}, ends);
    if (!is_new && lane->second != ends)
      refuse(fmt::format("another lane passes on by channel {}", transfer.channel));
  }
}

/// Whether the step comes to its end where every rank does everything in the listed order. Lanes wait for
/// less: what they wait for is listed before.
void check_end(const Program& program, const std::vector<Dependences>& waits) {
  StepWalk walk(program, waits, Overlap::none, program.defers_updates ? 2 : 1);
  std::vector<StepWalk::Turn> ready = walk.take_ready();
  while (!ready.empty()) {
    const StepWalk::Turn turn = ready.back();
    ready.pop_back();
    walk.done(turn, 0);
    for (const StepWalk::Turn& next : walk.take_ready()) ready.push_back(next);
  }
  const auto stuck = walk.stuck();
  if (!stuck) return;
  const MeshProgram& mesh = program.meshes[stuck->mesh];
  refuse_program(stuck->mesh, fmt::format("it waits for ever at {}",
                                          instruction_words(mesh, mesh.schedule[stuck->run],
                                                            static_cast<std::size_t>(stuck->instruction))));
}

}  // namespace

void verify(const Program& program, const std::vector<Dependences>& waits) {
  if (program.servers) {
    if (!program.has_states_at_servers())
      check_served_sums(program);
    else if (const MeshProgram& mesh = program.meshes.front(); mesh.lead >= 0 && mesh.keeps_step())
      refuse_program(MeshIndex(0), "its devices wait for each other in a step, and may be in different ones");
    verify(program_of_servers(program));
  }
  for (const MeshIndex m : program.meshes.indices()) {
    check_schedule(program.meshes[m], m, program.micro_batches);
    check_corrections(program.meshes[m], m, program.corrects_updates);
    check_deferred(program.meshes[m], m, program.defers_updates);
  }
  check_messages(program);
  check_routes(program);
  for (const MeshIndex m : program.meshes.indices()) {
    check_owners(program.meshes[m], m);
    check_places(program.meshes[m], m, program.micro_batches);
    for (int s = 0; s < static_cast<int>(program.meshes[m].segments.size()); ++s)
      check_sharing(program.meshes[m], m, s, waits[m]);
    check_races(program, m, waits[m]);
  }
  check_end(program, waits);
}

void verify(const Program& program) { verify(program, dependences(program)); }

}  // namespace alpa
