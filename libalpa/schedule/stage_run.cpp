#include "libalpa/schedule/stage_run.h"

namespace alpa {

const char* segment_name(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::forward:
      return "forward";
    case SegmentKind::backward:
      return "backward";
    case SegmentKind::backward_inputs:
      return "backward of inputs";
    case SegmentKind::backward_weights:
      return "backward of weights";
    case SegmentKind::update:
      return "update";
  }
  return "";
}

}  // namespace alpa
