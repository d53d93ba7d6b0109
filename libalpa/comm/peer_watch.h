#pragma once
#include <functional>
#include <string>
#include <vector>

namespace alpa {

/// When a wait for other ranks is too long. Only time in which the waiting rank was awake counts: a job that
/// was suspended as a whole has not waited.
struct HangLimits {
  double tell_after_s = 0;  ///< it is told, once; 0: it is not
  double timeout_s = 0;     ///< it ends with Error(peer); 0: it has no end
};

/// What the waits of a rank have in common.
struct PeerWatch {
  HangLimits limits;
  std::vector<std::string> places;  ///< by rank of the session, e.g. "rank 3 on node1"
  std::function<void(const std::string&)> tell;
};

}  // namespace alpa
