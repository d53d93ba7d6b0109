#pragma once
#include <span>
#include <string>

#include "libalpa/base/constraint.h"

namespace alpa {

/// What of its communication a mesh does while it computes. What is not overlapped is done in turn with the
/// computation, as listed.
enum class Overlap {
  none,
  transfers,  ///< messages between meshes
  all,        ///< these, collectives, and what is loaded
};

/// As options, pins and plans call them.
std::span<const Word<Overlap>> overlap_words();
std::string overlap_name(Overlap);
Overlap find_overlap(const std::string& name);  ///< Throws Error(input) that lists them.

}  // namespace alpa
