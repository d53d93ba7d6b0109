#include "libalpa/program/lower/buffer_slots.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace alpa {
namespace {

/// The segments that use a buffer, but for the update, ascending.
using UsingSegments = std::vector<int>;

/// From the first run that uses a buffer for a micro-batch to the last.
struct Life {
  int begin, end;
};

template <class T>
using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;

class Slots {
 public:
  /// Which lanes go ahead of the computation matters where buffers come to have slots in common.
  explicit Slots(MeshProgram& mesh, Overlap overlap = Overlap::none)
      : mesh_(mesh), uses_(mesh.buffers.size()), is_alone_(mesh.buffers.size()) {
    const std::vector<int> turns = turns_of_segments(mesh);
    for (int s = 0; s < static_cast<int>(mesh.segments.size()); ++s)
      for (const Instruction& instruction : mesh.segments[s].instructions)
        for (const BufferIndex touched : buffers_touched(instruction)) {
          const BufferIndex b = mesh.whole(touched);
          const bool is_loaded_ahead = std::holds_alternative<Load>(instruction.body) &&
                                       !is_in_turn(mesh.lanes[instruction.lane].kind, overlap);
          is_alone_[b] = is_alone_[b] || turns[s] < 0 || b != touched || is_loaded_ahead ||
                         std::holds_alternative<Send>(instruction.body);
          if (turns[s] >= 0 && (uses_[b].empty() || uses_[b].back() != s)) uses_[b].push_back(s);
        }
  }

  void set() {
    for (const BufferIndex b : mesh_.buffers.indices()) {
      Buffer& buffer = mesh_.buffers[b];
      if (buffer.residence == Residence::micro_batch && !uses_[b].empty())
        buffer.slots = most(lives_of(uses_[b]));
    }
    if (mesh_.has_several_stages()) share();
    for (Buffer& buffer : mesh_.buffers)
      if (buffer.view_of >= 0) buffer.slots = mesh_.buffers[buffer.view_of].slots;
  }

  void assign_again() {
    std::map<BufferIndex, std::vector<BufferIndex>> sharing;
    for (const BufferIndex b : mesh_.buffers.indices())
      if (!mesh_.buffers[b].slot_of.empty()) sharing[mesh_.slots_of(b)].push_back(b);
    for (const auto& [first, buffers] : sharing) assign(buffers);
  }

 private:
  /// Of all micro-batches, in their order.
  const std::vector<Life>& lives_of(const UsingSegments& segments) {
    const auto [found, is_new] = lives_.try_emplace(segments);
    std::vector<Life>& lives = found->second;
    if (!is_new) return lives;
    for (int r = 0; r < static_cast<int>(mesh_.schedule.size()); ++r) {
      const SegmentRun& run = mesh_.schedule[r];
      if (!std::ranges::binary_search(segments, run.segment)) continue;
      if (run.micro_batch == std::ssize(lives)) lives.push_back({r, r});
      assert(run.micro_batch < std::ssize(lives));  // in their order
      lives[static_cast<std::size_t>(run.micro_batch)].end = r;
    }
    return lives;
  }

  /// [life] its slot, the lowest one that is free; all are sorted by their begin.
  static std::vector<int> coloured(const std::vector<Life>& lives) {
    LeastFirst<int> free;
    LeastFirst<std::pair<int, int>> taken;  // when it ends, slot
    std::vector<int> slots;
    int count = 0;
    for (const Life& life : lives) {
      for (; !taken.empty() && taken.top().first < life.begin; taken.pop()) free.push(taken.top().second);
      int slot = count;
      if (free.empty()) {
        ++count;
      } else {
        slot = free.top();
        free.pop();
      }
      taken.push({life.end, slot});
      slots.push_back(slot);
    }
    return slots;
  }

  static std::int64_t most(const std::vector<Life>& lives) {
    const std::vector<int> slots = coloured(lives);
    return slots.empty() ? 1 : 1 + std::ranges::max(slots);
  }

  void share() {
    std::map<std::int64_t, std::vector<BufferIndex>> of_bytes;
    for (const BufferIndex b : mesh_.buffers.indices()) {
      const Buffer& buffer = mesh_.buffers[b];
      if (buffer.residence == Residence::micro_batch && buffer.view_of < 0 && !is_alone_[b] &&
          buffer.space == MemorySpace::device && !uses_[b].empty())
        of_bytes[buffer.bytes].push_back(b);
    }
    for (const auto& [bytes, buffers] : of_bytes) {
      if (buffers.size() < 2) continue;
      const int slots = assign(buffers);
      for (const BufferIndex b : buffers) {
        mesh_.buffers[b].slots = slots;
        if (b != buffers.front()) mesh_.buffers[b].slots_in = buffers.front();
      }
    }
  }

  /// To the micro-batches of buffers that have slots in common. Returns how many that takes.
  int assign(const std::vector<BufferIndex>& buffers) {
    struct Kept {
      Life life;
      BufferIndex buffer;
    };
    std::vector<Kept> all;
    for (const BufferIndex b : buffers)
      for (const Life& life : lives_of(uses_[b])) all.push_back({life, b});
    std::ranges::stable_sort(all, {}, [](const Kept& kept) { return kept.life.begin; });
    std::vector<Life> lives;
    for (const Kept& kept : all) lives.push_back(kept.life);
    const std::vector<int> slots = coloured(lives);
    for (const BufferIndex b : buffers) mesh_.buffers[b].slot_of.clear();
    for (std::size_t i = 0; i < all.size(); ++i)  // a buffer's micro-batches begin in their order
      mesh_.buffers[all[i].buffer].slot_of.push_back(slots[i]);
    return 1 + std::ranges::max(slots);
  }

  MeshProgram& mesh_;
  Indexed<BufferIndex, UsingSegments> uses_;
  Indexed<BufferIndex, bool> is_alone_;
  std::map<UsingSegments, std::vector<Life>> lives_;
};

}  // namespace

void set_slots(MeshProgram& mesh, Overlap overlap) { Slots(mesh, overlap).set(); }

void assign_slots(MeshProgram& mesh) { Slots(mesh).assign_again(); }

}  // namespace alpa
