#pragma once
#include <string>

#include "libalpa/cluster/profile.h"

namespace alpa {

/// How much the measurements of a profile differ among themselves, which on machines that have nothing else
/// to do is a few per cent.
struct Noise {
  /// Interquartile range of an operator's repetitions over their median; the median over all operators.
  double typical_spread = 0;
  /// How much longer the reference took at its slowest than at its fastest, of the run where that was most:
  /// 0.1 is a tenth longer. 0 in profiles without a reference.
  double drift = 0;

  /// Predictions are meant to be right to a tenth (median error of plans), which measurements that differ by
  /// more than that cannot give.
  static constexpr double most = 0.1;
  bool is_busy() const { return typical_spread > most || drift > most; }
};

Noise noise_of(const Profile&);

/// "the machines were busy while they were measured: ...", with what to try; "" where they were not.
std::string noise_warning(const Noise&);

}  // namespace alpa
