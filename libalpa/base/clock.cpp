#include "libalpa/base/clock.h"

#include <chrono>

namespace alpa {

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace alpa
