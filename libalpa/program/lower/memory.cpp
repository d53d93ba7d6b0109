#include "libalpa/program/lower/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"
#include "libalpa/program/order/dependences.h"

namespace alpa {
namespace {

/// The first and the last instruction of each lane that touches a buffer.
struct LaneUse {
  int lane, first, last;
};
using Uses = std::vector<LaneUse>;
using UsesOfBuffers = Indexed<BufferIndex, Uses>;

UsesOfBuffers uses_in(const MeshProgram& program, const Segment& segment) {
  UsesOfBuffers uses(program.buffers.size());
  for (int i = 0; i < static_cast<int>(segment.instructions.size()); ++i) {
    const Instruction& instruction = segment.instructions[i];
    for (const BufferIndex b : buffers_touched(instruction)) {
      Uses& of = uses[program.whole(b)];
      const auto found = std::ranges::find(of, instruction.lane, &LaneUse::lane);
      if (found == of.end())
        of.push_back({instruction.lane, i, i});
      else
        found->last = i;
    }
  }
  return uses;
}

/// Whether all that is done with one buffer surely comes before all that is done with the other.
bool ends_before(const Uses& one, const Uses& other, const RunOrder& order) {
  for (const LaneUse& first : one)
    for (const LaneUse& then : other)
      if (!order.before(first.last, then.first)) return false;
  return true;
}

/// Shares memory with others of its segment. Host memory is not short.
bool is_packed(const Buffer& buffer) {
  return buffer.residence == Residence::segment && buffer.space == MemorySpace::device && buffer.view_of < 0;
}

struct Placed {
  std::int64_t begin, end;
  BufferIndex buffer;
};

/// Where `count` pieces of so many bytes end.
std::int64_t end_of(std::int64_t begin, std::int64_t bytes, std::int64_t count) {
  if (const auto end = checked_sum(begin, checked_product(bytes, count))) return *end;
  throw Error(ErrorKind::input,
              fmt::format("{} buffers of {} bytes are more than an address counts", count, bytes),
              "fewer micro-batches, or a smaller batch");
}

/// Packings are looked for until they end so near the least, or for so many rounds, in which so many pairs of
/// buffers are compared.
constexpr double kGaps = 1.005;
constexpr std::int64_t kMostRounds = 64, kMostPairs = 20'000'000;

/// Where the buffers of a segment lie.
struct Packing {
  Indexed<BufferIndex, std::int64_t> offset;
  std::int64_t end;
};

/// One after another, each at the lowest place that is free during its whole life. `apart`: whether two
/// buffers may share memory.
template <typename Apart>
Packing pack_so(const MeshProgram& program, const std::vector<BufferIndex>& order, std::int64_t base,
                const Apart& apart) {
  std::vector<Placed> placed;  // sorted by begin
  Packing packing{Indexed<BufferIndex, std::int64_t>(program.buffers.size(), -1), base};
  for (const BufferIndex b : order) {
    const std::int64_t bytes = program.buffers[b].bytes;
    std::int64_t at = base;
    for (const Placed& other : placed)
      if (at + bytes > other.begin && at < other.end && !apart(b, other.buffer)) at = other.end;
    packing.offset[b] = at;
    const Placed here{at, end_of(at, bytes, 1), b};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), here,
                                   [](const Placed& x, const Placed& y) { return x.begin < y.begin; }),
                  here);
    packing.end = std::max(packing.end, here.end);
  }
  return packing;
}

/// The first and last instruction of each buffer in a segment.
Indexed<BufferIndex, std::pair<int, int>> lives_of(const UsesOfBuffers& uses) {
  Indexed<BufferIndex, std::pair<int, int>> lives;
  for (const Uses& of : uses)
    lives.push_back({of.empty() ? -1 : std::ranges::min(of, {}, &LaneUse::first).first,
                     of.empty() ? -1 : std::ranges::max(of, {}, &LaneUse::last).last});
  return lives;
}

/// What is alive at once where instructions follow each other: no packing takes less.
std::int64_t least_bytes(const MeshProgram& program, const std::vector<BufferIndex>& buffers,
                         const UsesOfBuffers& uses) {
  const auto lives = lives_of(uses);
  std::map<int, std::int64_t> change;
  for (const BufferIndex b : buffers) {
    change[lives[b].first] += program.buffers[b].bytes;
    change[lives[b].second + 1] -= program.buffers[b].bytes;
  }
  std::int64_t now = 0, least = 0;
  for (const auto& [instruction, bytes] : change) least = std::max(least, now += bytes);
  return least;
}

/// Largest first. Where that leaves gaps, what reached the end comes first the next time, of all rounds the
/// best counts.
template <typename Apart>
Packing pack(const MeshProgram& program, const UsesOfBuffers& uses, std::int64_t base, const Apart& apart) {
  std::vector<BufferIndex> order;
  for (const BufferIndex b : program.buffers.indices())
    if (is_packed(program.buffers[b]) && !uses[b].empty()) order.push_back(b);
  std::ranges::stable_sort(order, std::greater(), [&](BufferIndex b) { return program.buffers[b].bytes; });
  Packing best = pack_so(program, order, base, apart);
  const auto enough =
      static_cast<std::int64_t>(kGaps * static_cast<double>(least_bytes(program, order, uses)));
  const auto pairs = std::max<std::int64_t>(1, std::ssize(order) * std::ssize(order));
  Packing last = best;
  for (std::int64_t round = 0; round < std::min(kMostRounds, kMostPairs / pairs); ++round) {
    if (best.end - base <= enough) break;
    std::ranges::stable_partition(
        order, [&](BufferIndex b) { return last.offset[b] + program.buffers[b].bytes == last.end; });
    last = pack_so(program, order, base, apart);
    if (last.end < best.end) best = last;
  }
  return best;
}

/// By the order that the lanes have anyway.
Packing pack_freely(const MeshProgram& program, const UsesOfBuffers& uses, const RunOrder& order,
                    std::int64_t base) {
  return pack(program, uses, base, [&](BufferIndex a, BufferIndex b) {
    return ends_before(uses[a], uses[b], order) || ends_before(uses[b], uses[a], order);
  });
}

/// By the order of the instructions, which those that take over memory are made to keep to (wait_in_order).
Packing pack_in_order(const MeshProgram& program, const UsesOfBuffers& uses, std::int64_t base) {
  const auto lives = lives_of(uses);
  return pack(program, uses, base, [&](BufferIndex a, BufferIndex b) {
    return lives[a].second < lives[b].first || lives[b].second < lives[a].first;
  });
}

/// Likewise those that are moved between memories, of which later ones take the place of earlier ones; all
/// else by the order that the lanes have anyway, so that the computation waits for no move but of what it
/// takes.
Packing pack_moved_in_order(const MeshProgram& program, const UsesOfBuffers& uses, const RunOrder& order,
                            std::int64_t base) {
  const auto lives = lives_of(uses);
  const auto is_moved = [&](BufferIndex b) {
    return std::ranges::any_of(uses[b], [&](const LaneUse& use) {
      return program.lanes[use.lane].kind == LaneKind::fetch ||
             program.lanes[use.lane].kind == LaneKind::offload;
    });
  };
  Indexed<BufferIndex, bool> moved(program.buffers.size());
  for (const BufferIndex b : moved.indices()) moved[b] = is_moved(b);
  return pack(program, uses, base, [&](BufferIndex a, BufferIndex b) {
    if (moved[a] && moved[b]) return lives[a].second < lives[b].first || lives[b].second < lives[a].first;
    return ends_before(uses[a], uses[b], order) || ends_before(uses[b], uses[a], order);
  });
}

void wait_in_order(MeshProgram& program, Segment& segment, const UsesOfBuffers& uses, const RunOrder& order) {
  const auto lives = lives_of(uses);
  std::vector<BufferIndex> packed;
  for (const BufferIndex b : uses.indices())
    if (is_packed(program.buffers[b]) && !uses[b].empty()) packed.push_back(b);
  std::ranges::sort(packed, {}, [&](BufferIndex b) { return program.buffers[b].offset; });
  const std::size_t lanes = program.lanes.size();
  // [instruction][lane] The last that it waits for, of those that the order does not have anyway.
  std::vector<int> waits(segment.instructions.size() * lanes, -1);
  const auto take_over = [&](BufferIndex earlier, BufferIndex later) {
    const int first = lives[later].first;
    const auto row = static_cast<std::size_t>(first) * lanes;
    for (const LaneUse& use : uses[earlier]) {
      int& last = waits[row + static_cast<std::size_t>(use.lane)];
      if (use.last > last && !order.before(use.last, first)) last = use.last;
    }
  };
  for (std::size_t i = 0; i < packed.size(); ++i)
    for (std::size_t j = i + 1; j < packed.size(); ++j) {
      const BufferIndex low = packed[i], high = packed[j];
      if (program.buffers[high].offset >= program.buffers[low].offset + program.buffers[low].bytes) break;
      if (lives[low].second < lives[high].first)
        take_over(low, high);
      else
        take_over(high, low);
    }
  for (std::size_t i = 0; i < segment.instructions.size(); ++i)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      if (const int last = waits[i * lanes + lane]; last >= 0) segment.instructions[i].after.push_back(last);
}

/// Places what lasts as long as a segment's run. Returns where its memory ends.
std::int64_t place_in_segment(MeshProgram& program, int s, const Dependences& waits, std::int64_t base,
                              std::int64_t limit) {
  Segment& segment = program.segments[s];
  const UsesOfBuffers uses = uses_in(program, segment);
  const RunOrder order(program, waits, s);
  bool in_order = base >= limit;  // nothing fits that lanes need apart
  Packing packing = in_order ? pack_in_order(program, uses, base) : pack_freely(program, uses, order, base);
  const auto offer = [&](Packing other) {
    if (other.end >= packing.end) return;
    packing = std::move(other);
    in_order = true;
  };
  if (!in_order && packing.end > limit && std::ranges::any_of(segment.instructions, is_move))
    offer(pack_moved_in_order(program, uses, order, base));
  if (base < limit && packing.end > limit) offer(pack_in_order(program, uses, base));
  for (const BufferIndex b : program.buffers.indices())
    if (packing.offset[b] >= 0) program.buffers[b].offset = packing.offset[b];
  if (in_order) wait_in_order(program, segment, uses, order);
  return packing.end;
}

/// What each owner has follows each other; that of different places along an axis is on different devices, so
/// it lies at the same addresses. Returns where the fullest owner's ends.
std::int64_t place_owned(MeshProgram& program, Residence residence, std::int64_t begin) {
  std::map<int, std::map<int, std::int64_t>> end;  // by axis and place
  for (int axis = 0; axis < static_cast<int>(program.mesh.shape.size()); ++axis) {
    std::int64_t of_axis = begin;
    for (Buffer& buffer : program.buffers) {
      if (buffer.owner.axis != axis || buffer.residence != residence || buffer.view_of >= 0) continue;
      std::int64_t& at = end[axis].try_emplace(buffer.owner.place, begin).first->second;
      buffer.offset = at;
      at = end_of(at, buffer.bytes, buffer.slots);
      of_axis = std::max(of_axis, at);
    }
    begin = of_axis;
  }
  return begin;
}

}  // namespace

void lay_out(MeshProgram& program, const Graph& graph, std::int64_t limit) {
  program.memory = {};
  for (Segment& segment : program.segments)
    for (Instruction& instruction : segment.instructions) instruction.after.clear();
  std::vector<bool> parameter(graph.values.size());
  for (const State& state : graph.states) parameter[state.value] = state.is_parameter;
  std::int64_t at = 0;
  const auto place = [&](Residence residence) {
    for (Buffer& buffer : program.buffers) {
      if (buffer.residence != residence || buffer.view_of >= 0 || buffer.slots_in >= 0 ||
          buffer.space != MemorySpace::device || !buffer.owner.is_everybody())
        continue;
      buffer.offset = at;
      at = end_of(at, buffer.bytes, buffer.slots);
      if (residence == Residence::state)
        (parameter[buffer.value] ? program.memory.parameters : program.memory.optimizer) += buffer.bytes;
    }
  };
  place(Residence::state);
  const std::int64_t states_begin = at;
  at = place_owned(program, Residence::state, at);
  program.memory.optimizer += at - states_begin;
  const std::int64_t states_end = at;
  at = place_owned(program, Residence::step, at);
  const std::int64_t owned_step = at - states_end;
  place(Residence::step);
  program.memory.gradients = 0;  // in buckets too; pieces of messages on their way last a step as well
  const auto is_part_of_one = [&](const Buffer& buffer) {
    return buffer.view_of >= 0 && program.buffers[buffer.view_of].value >= 0;
  };
  for (const Buffer& buffer : program.buffers)
    if (buffer.residence == Residence::step && buffer.value >= 0 && buffer.space == MemorySpace::device &&
        buffer.owner.is_everybody() && !is_part_of_one(buffer))
      program.memory.gradients += buffer.bytes * buffer.slots;
  program.memory.gradients += owned_step;
  const std::int64_t messages = at - states_end - program.memory.gradients;
  const std::int64_t step_end = at;
  place(Residence::micro_batch);
  program.memory.activations = at - step_end;
  std::int64_t end = at;
  const Dependences waits = dependences(program);
  for (int segment = 0; segment < static_cast<int>(program.segments.size()); ++segment)
    end = std::max(end, place_in_segment(program, segment, waits, at, limit));
  program.memory.workspace = end - at + messages;
  program.memory.total = end;
  for (Buffer& buffer : program.buffers) {
    if (buffer.view_of >= 0 || buffer.space != MemorySpace::host) continue;
    buffer.offset = program.memory.host;
    program.memory.host = end_of(program.memory.host, buffer.bytes, buffer.slots);
  }
  for (Buffer& buffer : program.buffers)
    if (buffer.slots_in >= 0) buffer.offset = program.buffers[buffer.slots_in].offset;
  for (Buffer& buffer : program.buffers)
    if (buffer.view_of >= 0) buffer.offset = program.buffers[buffer.view_of].offset + buffer.view_offset;
}

}  // namespace alpa
