#pragma once
#include <span>
#include <string>

namespace alpa {

/// What of its communication a mesh does while it computes. What is not overlapped is done in turn with the
/// computation, as listed.
enum class Overlap {
  none,
  transfers,  ///< messages between meshes
  all,        ///< these, collectives, and what is loaded
};

struct OverlapWord {
  Overlap overlap;
  const char* name;       ///< in options, pins and plans
  const char* described;  ///< in a line
};
std::span<const OverlapWord> overlap_words();
const char* overlap_name(Overlap);
Overlap find_overlap(const std::string& name);  ///< Throws Error(input) that lists them.

}  // namespace alpa
