#include "libalpa/program/order/occupation.h"

#include <algorithm>

namespace alpa {

void Occupation::runs(TimeKind kind, double start_s, double end_s) {
  advance(start_s);
  double& until = until_[static_cast<std::size_t>(kind)];
  until = std::max(until, end_s);
}

void Occupation::begins(TimeKind kind, double start_s) {
  advance(start_s);
  ++under_way_[static_cast<std::size_t>(kind)];
}

void Occupation::ends(TimeKind kind, double end_s) {
  advance(end_s);
  --under_way_[static_cast<std::size_t>(kind)];
}

bool Occupation::is_busy(TimeKind kind) const {
  const auto k = static_cast<std::size_t>(kind);
  return until_[k] > now_s_ || under_way_[k] > 0;
}

void Occupation::advance(double to_s) {
  while (now_s_ < to_s) {
    double next_s = to_s;
    for (const double until : until_)
      if (until > now_s_) next_s = std::min(next_s, until);
    (is_busy(TimeKind::compute)      ? time_.compute_s
     : is_busy(TimeKind::collective) ? time_.collective_s
     : is_busy(TimeKind::transfer)   ? time_.transfer_s
                                     : time_.idle_s) += next_s - now_s_;
    if (is_busy(TimeKind::compute) && is_busy(TimeKind::collective)) hidden_.collective_s += next_s - now_s_;
    if ((is_busy(TimeKind::compute) || is_busy(TimeKind::collective)) && is_busy(TimeKind::transfer))
      hidden_.transfer_s += next_s - now_s_;
    now_s_ = next_s;
  }
}

}  // namespace alpa
