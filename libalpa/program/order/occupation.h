#pragma once
// Internal to this module.
#include <array>

#include "libalpa/plan/plan.h"
#include "libalpa/program/order/time_kind.h"

namespace alpa {

/// How a mesh spends its time, by what its lanes do one after another; apart from that what hides behind
/// computation, and transfers behind collectives.
class Occupation {
 public:
  Occupation(MeshTime& time, HiddenTime& hidden) : time_(time), hidden_(hidden) {}

  /// Something of that kind runs; starts come in order.
  void runs(TimeKind kind, double start_s, double end_s);

  /// The same where the end is not known yet.
  void begins(TimeKind kind, double start_s);
  void ends(TimeKind kind, double end_s);

  void finish(double step_s) { advance(step_s); }

 private:
  bool is_busy(TimeKind kind) const;
  void advance(double to_s);

  MeshTime& time_;
  HiddenTime& hidden_;
  std::array<double, 3> until_{};   ///< [TimeKind] when the last of that kind ends whose end is known
  std::array<int, 3> under_way_{};  ///< [TimeKind] others
  double now_s_ = 0;
};

}  // namespace alpa
