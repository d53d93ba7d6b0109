#include "libalpa/comm/naps.h"

#include <algorithm>

namespace alpa {

void Naps::moved(double now_s) {
  moved_s_ = now_s;
  beside_computation_s_ = kShortest_s;
  polls_ = 0;
}

double Naps::next_s(double now_s, bool is_waited_for) {
  if (is_waited_for && ++polls_ < kPollsWhenWaitedFor) return 0;
  double shortest_s = kShortest_s;
  if (!is_waited_for) {
    shortest_s = beside_computation_s_;
    beside_computation_s_ = std::min(2 * beside_computation_s_, kBesideComputation_s);
  }
  return std::clamp((now_s - moved_s_) / 100, shortest_s, kLongest_s);
}

}  // namespace alpa
