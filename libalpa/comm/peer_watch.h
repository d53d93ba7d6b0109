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
  std::function<void(const std::string&)> tell;
};

}  // namespace alpa
