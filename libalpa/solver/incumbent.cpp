#include "libalpa/solver/incumbent.h"

#include <algorithm>

namespace alpa {

// A century is as good as no limit, and keeps the clock's arithmetic in range.
Deadline::Deadline(double seconds_from_now)
    : end_(std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(std::clamp(seconds_from_now, 0.0, 3e9)))) {}

double Deadline::seconds_left() const {
  return std::chrono::duration<double>(end_ - std::chrono::steady_clock::now()).count();
}

}  // namespace alpa
