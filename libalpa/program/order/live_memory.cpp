#include "libalpa/program/order/live_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace alpa {
namespace {

struct Life {
  double first_s = 0, last_s = 0;
  std::int64_t bytes = 0;
};

/// Contents of a buffer: its index, and of which micro-batch and segment they are where that matters.
using Contents = std::tuple<int, int, int>;

Contents contents_at(BufferIndex buffer, const Buffer& of, const TimelineRow& row) {
  switch (of.residence) {
    case Residence::state:
    case Residence::step:
      break;
    case Residence::micro_batch:
      return {buffer, std::max(row.micro_batch, 0), -1};
    case Residence::segment:
      return {buffer, row.micro_batch, row.segment};
  }
  return {buffer, -1, -1};
}

}  // namespace

std::vector<LiveBytes> live_bytes(const RankRows& rank, const Program& program) {
  const auto [m, coordinate] = place_of(program, rank.rank);
  const MeshProgram& mesh = program.meshes[m];
  const auto is_here = [&, &at = coordinate](const Buffer& buffer) {
    return buffer.space == MemorySpace::device && buffer.view_of < 0 && buffer.owner.is_at(at);
  };
  std::int64_t live = 0;
  for (const Buffer& buffer : mesh.buffers)
    if (buffer.residence == Residence::state && is_here(buffer)) live += buffer.bytes * buffer.slots;
  std::map<Contents, Life> lives;
  for (const TimelineRow& row : rank.rows)
    for (const BufferIndex touched : buffers_touched(instruction_of(program, row))) {
      const BufferIndex b = mesh.whole(touched);
      const Buffer& buffer = mesh.buffers[b];
      if (buffer.residence == Residence::state || !is_here(buffer)) continue;
      const double end_s = row.start_s + row.duration_s;
      Life& life = lives.try_emplace(contents_at(b, buffer, row), Life{row.start_s, end_s, buffer.bytes})
                       .first->second;
      life.first_s = std::min(life.first_s, row.start_s);
      life.last_s = std::max(life.last_s, end_s);
    }
  std::vector<LiveBytes> changes;  // of which those that end something come first, where times are equal
  for (const auto& [of, life] : lives) {
    changes.push_back({life.first_s, life.bytes});
    changes.push_back({life.last_s, -life.bytes});
  }
  std::ranges::sort(changes, {}, [](const LiveBytes& c) { return std::pair(c.at_s, c.bytes); });
  std::vector<LiveBytes> all{{0, live}};
  for (const LiveBytes& change : changes) {
    live += change.bytes;
    if (all.back().at_s == change.at_s)
      all.back().bytes = live;
    else
      all.push_back({change.at_s, live});
  }
  return all;
}

}  // namespace alpa
