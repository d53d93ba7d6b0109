#include "libalpa/schedule/overlap.h"

#include <fmt/core.h>

#include <algorithm>

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
  std::string all;
  for (const OverlapWord& word : kWords) all += (all.empty() ? "" : ", ") + std::string(word.name);
  throw Error(ErrorKind::input, fmt::format("unknown overlap '{}'", name), "one of " + all);
}

}  // namespace alpa
