#pragma once
#include <string>

#include "libalpa/plan/placement.h"

namespace alpa {

/// How a stage's tensors lie on its mesh, in words: all parameters; optimizer state and sums of gradients
/// that lie otherwise than their parameter; saved activations that are split.
std::string stage_layouts(const Placement&, StageIndex stage);

}  // namespace alpa
