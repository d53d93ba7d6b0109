#pragma once
#include <string>
#include <vector>

#include "libalpa/profiler/workload.h"

namespace alpa {

/// One thing timed on every rank at the same time. Empty `rank_s`: some rank could not run it, `why` says so.
struct Timing {
  double median_s = 0;
  double spread_s = 0;                ///< slowest rank's median minus the fastest one's
  std::vector<double> rank_s;         ///< each rank's median; below 0: it took no part
  std::vector<double> rank_spread_s;  ///< interquartile range of each rank's repetitions
  std::string why;

  bool has_failed() const { return rank_s.empty(); }
};

/// An operator timed alone and beside communication, in rounds that take turns.
struct TimingBeside {
  Timing alone, beside;
};

/// What times things. All ranks make the same calls in the same order and get the same answers.
class Instrument {
 public:
  virtual ~Instrument() = default;

  /// Throws where ranks can no longer work together; what only this sample's operator cannot do is in the
  /// answer.
  virtual Timing time(const OperatorCase&) = 0;
  virtual Timing time(const CollectiveCase&) = 0;

  /// The operator on all ranks, alone and while sums over all ranks of so many bytes are under way in the way
  /// of a lane that a plan overlaps.
  virtual TimingBeside time_beside_sums(const OperatorCase&, std::int64_t bytes) = 0;

  /// So many bytes from the host's memory into the device's while as many go the other way, on all ranks.
  virtual Timing time_moves(std::int64_t bytes) = 0;

  /// The largest of the ranks' numbers.
  virtual int largest(int mine) = 0;
};

}  // namespace alpa
