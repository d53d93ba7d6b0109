#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "libalpa/program/program.h"

namespace alpa {

constexpr std::array kPhases{Phase::forward, Phase::backward, Phase::update};
inline Phase next(Phase phase) { return phase == Phase::forward ? Phase::backward : Phase::update; }
inline Phase phase_of(SegmentKind kind) {
  return kind == SegmentKind::forward ? Phase::forward
                                      : (kind == SegmentKind::update ? Phase::update : Phase::backward);
}

/// [phase] Of buffers, most at once, with or without what only messages and sums over all ranks need.
inline std::vector<std::int64_t> live_bytes(const MeshProgram& mesh, bool messages) {
  Indexed<BufferIndex, bool> of_messages(mesh.buffers.size());
  for (const BufferIndex b : mesh.buffers.indices())
    of_messages[b] = mesh.buffers[b].name == "sent pieces" || mesh.buffers[b].name == "received pieces";
  const auto counts = [&](const Buffer& b) { return messages || !of_messages[mesh.buffers.index_of(b)]; };
  std::int64_t lasting = 0;
  for (const Buffer& buffer : mesh.buffers)
    if (buffer.residence != Residence::segment && buffer.view_of < 0 && buffer.space == MemorySpace::device &&
        counts(buffer))
      lasting += buffer.slots * buffer.bytes;
  std::vector<std::int64_t> most(kPhases.size(), lasting);
  for (const Segment& segment : mesh.segments) {
    std::map<BufferIndex, std::pair<int, int>> uses;  // first, last
    for (int i = 0; i < static_cast<int>(segment.instructions.size()); ++i)
      for (const BufferIndex b : buffers_touched(segment.instructions[i]))
        uses.try_emplace(mesh.whole(b), i, i).first->second.second = i;
    std::vector<std::int64_t> step(segment.instructions.size() + 1);
    for (const auto& [b, range] : uses) {
      const Buffer& buffer = mesh.buffers[b];
      if (buffer.residence != Residence::segment || !counts(buffer)) continue;
      step[range.first] += buffer.bytes;
      step[static_cast<std::size_t>(range.second) + 1] -= buffer.bytes;
    }
    std::int64_t now = lasting;
    std::int64_t& of_phase = most[static_cast<std::size_t>(phase_of(segment.kind))];
    for (const std::int64_t change : step) of_phase = std::max(of_phase, now += change);
  }
  return most;
}

}  // namespace alpa
