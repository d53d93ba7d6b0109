#include "libalpa/program/lower/fetch_ahead.h"

#include <algorithm>
#include <utility>

namespace alpa {
namespace {

/// What is fetched for one place.
struct FetchedTogether {
  std::size_t first = 0;  ///< of them in the segment
  std::vector<Instruction> fetches;
  std::int64_t bytes = 0;
};

/// In their order: a place is the first that uses any of what was fetched since the last one.
std::vector<FetchedTogether> fetched_in(const MeshProgram& mesh, const Segment& segment) {
  std::vector<FetchedTogether> all;
  std::vector<BufferIndex> fetched;
  for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
    const Instruction& instruction = segment.instructions[i];
    if (const auto* fetch = std::get_if<Fetch>(&instruction.body)) {
      if (fetched.empty()) all.push_back({i, {}});
      all.back().fetches.push_back(instruction);
      all.back().bytes += mesh.buffers[fetch->to].bytes;
      fetched.push_back(fetch->to);
    } else if (std::ranges::any_of(buffers_touched(instruction), [&](BufferIndex b) {
                 return std::ranges::find(fetched, mesh.whole(b)) != fetched.end();
               })) {
      fetched.clear();
    }
  }
  return all;
}

}  // namespace

void fetch_ahead(MeshProgram& mesh) {
  for (Segment& segment : mesh.segments) {
    const std::vector<FetchedTogether> all = fetched_in(mesh, segment);
    if (all.empty()) continue;
    const std::int64_t most = std::ranges::max(all, {}, &FetchedTogether::bytes).bytes;
    std::vector<Instruction> listed;
    std::size_t used = 0, next = 0;  // places that are over, and those that all was listed for
    std::int64_t there = 0;
    const auto list_what_has_room = [&] {
      for (; next < all.size() && there + all[next].bytes <= 2 * most; ++next) {
        there += all[next].bytes;
        listed.insert(listed.end(), all[next].fetches.begin(), all[next].fetches.end());
      }
    };
    list_what_has_room();
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      if (used + 1 < all.size() && i == all[used + 1].first) {
        there -= all[used++].bytes;
        list_what_has_room();
      }
      if (!std::holds_alternative<Fetch>(segment.instructions[i].body))
        listed.push_back(std::move(segment.instructions[i]));
    }
    segment.instructions = std::move(listed);
  }
}

}  // namespace alpa
