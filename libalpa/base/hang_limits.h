#pragma once

namespace alpa {

/// When a wait for other ranks is too long. Only time in which the waiting rank was awake counts: a job that
/// was suspended as a whole has not waited.
struct HangLimits {
  double report_after_s = 0;  ///< it is reported, once; 0: it is not
  double timeout_s = 0;       ///< it ends with Error(peer); 0: it has no end
};

}  // namespace alpa
