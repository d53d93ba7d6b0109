#include "libalpa/program/memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"

namespace alpa {
namespace {

struct Placed {
  std::int64_t begin, end;
  Lifetime life;
};

/// Where `count` pieces of so many bytes end.
std::int64_t end_of(std::int64_t begin, std::int64_t bytes, std::int64_t count) {
  if (const auto end = checked_sum(begin, checked_product(bytes, count))) return *end;
  throw Error(ErrorKind::input,
              fmt::format("{} buffers of {} bytes are more than an address counts", count, bytes),
              "fewer micro-batches, or a smaller batch");
}

/// Largest first, each at the lowest place that is free during its whole life.
std::int64_t pack_segment(StageProgram& program, SegmentKind kind, std::int64_t base) {
  const std::vector<Lifetime> lives = lifetimes(program, kind);
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].residence == Residence::segment && lives[b].first >= 0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return program.buffers[a].bytes > program.buffers[b].bytes;
  });
  std::vector<Placed> placed;  // sorted by begin
  std::int64_t end = base;
  for (const std::size_t b : order) {
    Buffer& buffer = program.buffers[b];
    std::int64_t at = base;
    for (const Placed& other : placed) {
      const bool together = lives[b].first <= other.life.last && other.life.first <= lives[b].last;
      if (together && at + buffer.bytes > other.begin && at < other.end) at = other.end;
    }
    buffer.offset = at;
    const Placed here{at, end_of(at, buffer.bytes, 1), lives[b]};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), here,
                                   [](const Placed& x, const Placed& y) { return x.begin < y.begin; }),
                  here);
    end = std::max(end, here.end);
  }
  return end;
}

}  // namespace

std::vector<Lifetime> lifetimes(const StageProgram& program, SegmentKind kind) {
  std::vector<Lifetime> lives(program.buffers.size());
  const auto& instructions = program.segment(kind);
  for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
    const auto touch = [&](const std::vector<int>& buffers) {
      for (const int b : buffers) {
        Lifetime& life = lives[static_cast<std::size_t>(b)];
        if (life.first < 0) life.first = i;
        life.last = i;
      }
    };
    touch(buffers_read(instructions[static_cast<std::size_t>(i)]));
    touch(buffers_written(instructions[static_cast<std::size_t>(i)]));
  }
  return lives;
}

void lay_out(StageProgram& program, const Graph& graph) {
  program.memory = {};
  std::vector<bool> parameter(graph.values.size());
  for (const State& state : graph.states)
    parameter[static_cast<std::size_t>(state.value)] = state.is_parameter;
  std::int64_t at = 0;
  const auto place = [&](Residence residence, std::int64_t slots) {
    for (Buffer& buffer : program.buffers) {
      if (buffer.residence != residence) continue;
      buffer.offset = at;
      at = end_of(at, buffer.bytes, slots);
      if (residence == Residence::state)
        (parameter[static_cast<std::size_t>(buffer.value)] ? program.memory.parameters
                                                           : program.memory.optimizer) += buffer.bytes;
    }
  };
  place(Residence::state, 1);
  const std::int64_t states_end = at;
  place(Residence::step, 1);
  std::int64_t leaving = 0;  // pieces on their way to other stages last a step too
  for (const Buffer& buffer : program.buffers)
    if (buffer.residence == Residence::step && buffer.value < 0) leaving += buffer.bytes;
  program.memory.gradients = at - states_end - leaving;
  const std::int64_t step_end = at;
  place(Residence::micro_batch, program.slots);
  program.memory.activations = at - step_end;
  std::int64_t end = at;
  for (const SegmentKind kind : every_segment) end = std::max(end, pack_segment(program, kind, at));
  program.memory.workspace = end - at + leaving;
  program.memory.total = end;
}

}  // namespace alpa
