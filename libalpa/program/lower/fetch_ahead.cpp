#include "libalpa/program/lower/fetch_ahead.h"

#include <algorithm>
#include <utility>

namespace alpa {
namespace {

/// What is fetched for one place.
struct FetchedTogether {
  std::size_t first = 0;  ///< of them in the segment
  std::vector<Instruction> fetches;
};

/// In their order: a place is the first that reads any of what was fetched since the last one.
std::vector<FetchedTogether> fetched_in(const MeshProgram& mesh, const Segment& segment) {
  std::vector<FetchedTogether> all;
  std::vector<BufferIndex> fetched;
  for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
    const Instruction& instruction = segment.instructions[i];
    if (const auto* fetch = std::get_if<Fetch>(&instruction.body)) {
      if (fetched.empty()) all.push_back({i, {}});
      all.back().fetches.push_back(instruction);
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
    std::vector<Instruction> listed = all.front().fetches;
    std::size_t next = 1;  // to be listed where those before it were wanted
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      if (next < all.size() && i == all[next - 1].first) {
        listed.insert(listed.end(), all[next].fetches.begin(), all[next].fetches.end());
        ++next;
      }
      if (!std::holds_alternative<Fetch>(segment.instructions[i].body))
        listed.push_back(std::move(segment.instructions[i]));
    }
    segment.instructions = std::move(listed);
  }
}

}  // namespace alpa
