#include "libalpa/schedule/overlap.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr OverlapWord kWords[] = {
    {Overlap::none, "none", "computation and communication take turns"},
    {Overlap::transfers, "transfers", "messages between stages go on while a stage computes"},
    {Overlap::all, "all", "likewise, and collectives too"},
};

}  // namespace

std::span<const OverlapWord> overlap_words() { return kWords; }

const char* overlap_name(Overlap overlap) {
  return std::ranges::find(kWords, overlap, &OverlapWord::overlap)->name;
}

Overlap find_overlap(const std::string& name) {
  const auto found = std::ranges::find_if(kWords, [&](const OverlapWord& word) { return name == word.name; });
  if (found != std::end(kWords)) return found->overlap;
  std::vector<std::string> names;
  for (const OverlapWord& word : kWords) names.push_back(word.name);
  throw Error(ErrorKind::input, fmt::format("unknown overlap '{}'", name),
              fmt::format("one of {}", fmt::join(names, ", ")));
}

}  // namespace alpa
