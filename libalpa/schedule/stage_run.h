#pragma once
#include "libalpa/base/index.h"

namespace alpa {

using StageIndex = Index<struct StagePlan>;

/// What a stage does for one micro-batch, or (update) once in a step. A backward is whole, or in two parts:
/// what leads to gradients of computed values, for which other stages wait, and what leads to gradients of
/// weights alone.
enum class SegmentKind { forward, backward, backward_inputs, backward_weights, update };
const char* segment_name(SegmentKind);

/// One run of a stage's segment.
struct StageRun {
  SegmentKind kind = SegmentKind::forward;
  int micro_batch = 0;
  StageIndex stage{0};  ///< where several stages share a mesh; an order of one stage leaves it 0
  bool operator==(const StageRun&) const = default;
};

}  // namespace alpa
