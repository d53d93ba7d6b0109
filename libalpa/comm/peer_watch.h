#pragma once
#include <functional>
#include <string>
#include <vector>

#include "libalpa/base/hang_limits.h"

namespace alpa {

/// What the waits of a rank have in common.
struct PeerWatch {
  HangLimits limits;
  std::vector<std::string> places;  ///< by rank of the session, e.g. "rank 3 on node1"
  std::function<void(const std::string&)> report;
  std::string option = "--hang-timeout";  ///< that gives more time, for the hint
  /// Where it is set, waits go on for no more than so many seconds once it holds.
  std::function<bool()> is_asked_to_end = {};
  double end_grace_s = 0;
};

}  // namespace alpa
