#pragma once
#include <cstddef>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/order/slowed_computation.h"
#include "libalpa/program/program.h"

namespace alpa {

/// Transfers between nodes that are under way. Those that take the same interface share it evenly, as streams
/// do: each goes on at the rate that the busiest of its interfaces leaves it.
class SharedNetwork {
 public:
  SharedNetwork(const Program&, const CostModel&);

  bool takes(int transfer) const { return !taken_[static_cast<std::size_t>(transfer)].empty(); }

  void begin(const UnderWay&, int transfer);

  /// When the next one of them is done if none begins before; infinity: there is none.
  double next_end_s() const { return next_end_s_; }
  UnderWay take_next();

 private:
  struct Flow {
    UnderWay what;
    int transfer = 0;
  };

  int sharing(const Flow&) const;
  void go_on_until(double to_s);
  void count_users(const Flow&, int more);

  std::vector<std::vector<int>> taken_;  ///< [transfer] interfaces, numbered
  std::vector<int> users_;               ///< [interface]
  std::vector<Flow> flows_;              ///< in the order in which they began
  double now_s_ = 0, next_end_s_ = infinity;
  std::size_t next_ = 0;  ///< to end, of flows_
};

}  // namespace alpa
