#include "libalpa/program/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"
#include "libalpa/program/dependences.h"

namespace alpa {
namespace {

/// The first and the last instruction of each lane that touches a buffer.
struct LaneUse {
  int lane, first, last;
};
using Uses = std::vector<LaneUse>;

std::vector<Uses> uses_in(const MeshProgram& program, const Segment& segment) {
  std::vector<Uses> uses(program.buffers.size());
  for (int i = 0; i < static_cast<int>(segment.instructions.size()); ++i) {
    const Instruction& instruction = segment.instructions[static_cast<std::size_t>(i)];
    for (const int b : buffers_touched(instruction)) {
      Uses& of = uses[static_cast<std::size_t>(b)];
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

struct Placed {
  std::int64_t begin, end;
  std::size_t buffer;
};

/// Where `count` pieces of so many bytes end.
std::int64_t end_of(std::int64_t begin, std::int64_t bytes, std::int64_t count) {
  if (const auto end = checked_sum(begin, checked_product(bytes, count))) return *end;
  throw Error(ErrorKind::input,
              fmt::format("{} buffers of {} bytes are more than an address counts", count, bytes),
              "fewer micro-batches, or a smaller batch");
}

/// Largest first, each at the lowest place that is free during its whole life. `apart`: whether two buffers
/// may share memory. Returns where the memory ends.
template <typename Apart>
std::int64_t pack(MeshProgram& program, const std::vector<Uses>& uses, std::int64_t base,
                  const Apart& apart) {
  std::vector<std::size_t> largest_first;
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].residence == Residence::segment && !uses[b].empty()) largest_first.push_back(b);
  std::stable_sort(largest_first.begin(), largest_first.end(), [&](std::size_t a, std::size_t b) {
    return program.buffers[a].bytes > program.buffers[b].bytes;
  });
  std::vector<Placed> placed;  // sorted by begin
  std::int64_t end = base;
  for (const std::size_t b : largest_first) {
    Buffer& buffer = program.buffers[b];
    std::int64_t at = base;
    for (const Placed& other : placed)
      if (at + buffer.bytes > other.begin && at < other.end && !apart(b, other.buffer)) at = other.end;
    buffer.offset = at;
    const Placed here{at, end_of(at, buffer.bytes, 1), b};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), here,
                                   [](const Placed& x, const Placed& y) { return x.begin < y.begin; }),
                  here);
    end = std::max(end, here.end);
  }
  return end;
}

/// By the order that the lanes have anyway.
std::int64_t pack_freely(MeshProgram& program, int segment, const Dependences& waits, std::int64_t base) {
  const std::vector<Uses> uses = uses_in(program, program.segments[static_cast<std::size_t>(segment)]);
  const RunOrder order(program, waits, segment);
  return pack(program, uses, base, [&](std::size_t a, std::size_t b) {
    return ends_before(uses[a], uses[b], order) || ends_before(uses[b], uses[a], order);
  });
}

int first_use(const Uses& uses) { return std::ranges::min(uses, {}, &LaneUse::first).first; }
int last_use(const Uses& uses) { return std::ranges::max(uses, {}, &LaneUse::last).last; }

/// By the order of the instructions, which those that take over memory are made to keep to.
std::int64_t pack_in_order(MeshProgram& program, int s, const Dependences& waits, std::int64_t base) {
  Segment& segment = program.segments[static_cast<std::size_t>(s)];
  const std::vector<Uses> uses = uses_in(program, segment);
  const RunOrder order(program, waits, s);
  const std::int64_t end = pack(program, uses, base, [&](std::size_t a, std::size_t b) {
    return last_use(uses[a]) < first_use(uses[b]) || last_use(uses[b]) < first_use(uses[a]);
  });
  std::vector<std::size_t> packed;
  for (std::size_t b = 0; b < uses.size(); ++b)
    if (program.buffers[b].residence == Residence::segment && !uses[b].empty()) packed.push_back(b);
  std::ranges::sort(packed, {}, [&](std::size_t b) { return program.buffers[b].offset; });
  const auto take_over = [&](std::size_t earlier, std::size_t later) {
    const int first = first_use(uses[later]);
    Instruction& instruction = segment.instructions[static_cast<std::size_t>(first)];
    for (const LaneUse& use : uses[earlier])
      if (use.lane != instruction.lane && !order.before(use.last, first))
        instruction.after.push_back(use.last);
  };
  for (std::size_t i = 0; i < packed.size(); ++i)
    for (std::size_t j = i + 1; j < packed.size(); ++j) {
      const Buffer &low = program.buffers[packed[i]], &high = program.buffers[packed[j]];
      if (high.offset >= low.offset + low.bytes) break;
      if (last_use(uses[packed[i]]) < first_use(uses[packed[j]]))
        take_over(packed[i], packed[j]);
      else
        take_over(packed[j], packed[i]);
    }
  for (Instruction& instruction : segment.instructions) {  // of several in one lane the last is enough
    std::map<int, int> last;
    for (const int other : instruction.after) {
      int& known =
          last.try_emplace(segment.instructions[static_cast<std::size_t>(other)].lane, other).first->second;
      known = std::max(known, other);
    }
    instruction.after.clear();
    for (const auto& [lane, other] : last) instruction.after.push_back(other);
  }
  return end;
}

}  // namespace

void lay_out(MeshProgram& program, const Graph& graph, std::int64_t limit) {
  program.memory = {};
  std::vector<bool> parameter(graph.values.size());
  for (const State& state : graph.states)
    parameter[static_cast<std::size_t>(state.value)] = state.is_parameter;
  std::int64_t at = 0;
  const auto place = [&](Residence residence) {
    for (Buffer& buffer : program.buffers) {
      if (buffer.residence != residence) continue;
      buffer.offset = at;
      at = end_of(at, buffer.bytes, buffer.slots);
      if (residence == Residence::state)
        (parameter[static_cast<std::size_t>(buffer.value)] ? program.memory.parameters
                                                           : program.memory.optimizer) += buffer.bytes;
    }
  };
  place(Residence::state);
  const std::int64_t states_end = at;
  place(Residence::step);
  std::int64_t leaving = 0;  // pieces on their way to other stages last a step too
  for (const Buffer& buffer : program.buffers)
    if (buffer.residence == Residence::step && buffer.value < 0) leaving += buffer.bytes * buffer.slots;
  program.memory.gradients = at - states_end - leaving;
  const std::int64_t step_end = at;
  place(Residence::micro_batch);
  program.memory.activations = at - step_end;
  std::int64_t end = at;
  const Dependences waits = dependences(program);
  for (int segment = 0; segment < static_cast<int>(program.segments.size()); ++segment) {
    std::int64_t segment_end = pack_freely(program, segment, waits, at);
    if (segment_end > limit) segment_end = pack_in_order(program, segment, waits, at);
    end = std::max(end, segment_end);
  }
  program.memory.workspace = end - at + leaving;
  program.memory.total = end;
}

}  // namespace alpa
