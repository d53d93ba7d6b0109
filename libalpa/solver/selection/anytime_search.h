#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/dual_certificate.h"
#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

struct AnytimeOptions {
  std::vector<double> price;  ///< of memory per time point, to begin with; empty: none are known
  double work = infinity;     ///< table and edge entries to look at
  double target = -infinity;  ///< stop when the incumbent costs at most this
  std::uint64_t seed = 0;
  int threads = 1;  ///< makes no difference to the result
};

/// A search for large networks that goes on as long as it may. First prices of memory are raised to a good
/// bound; for that goes a third of the time or work at most. Then, in turn: choices near different prices on
/// the way are improved and made to fit ("probes"); those that fit are recombined; the incumbent is improved
/// in neighbourhoods, for as long as that gains much. The network must come from presolve and have nodes; it
/// is borrowed.
class AnytimeSearch {
 public:
  AnytimeSearch(const SelectionNetwork&, AnytimeOptions, const Deadline&);
  ~AnytimeSearch();

  /// So many turns, fewer where the work or the time is spent or the target reached.
  void run(int turns, Incumbent&);
  double work_left() const;

  /// Of the best prices known; after run().
  const Certificate& certificate();
  bool is_certificate_cheap() const;  ///< beside the work so far
  const std::vector<double>& price() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace alpa
