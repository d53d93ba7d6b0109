#pragma once
#include <memory>
#include <vector>

#include "libalpa/solver/selection/incumbent.h"
#include "libalpa/solver/selection/neighbourhood_lane.h"

namespace alpa {

/// Lanes that start from one choice and bring their gains together after each round. The result does not
/// depend on the number of threads. Borrows the view.
class NeighbourhoodLanes {
 public:
  NeighbourhoodLanes(const NeighbourhoodView&, int count, std::uint64_t seed);

  void start_from(const std::vector<int>& choice);

  /// Every lane walks so far; then all go on from the best of them with the steps of the others in it. Offers
  /// the best that fits; whether that was an improvement.
  bool walk(double work_of_each, int threads, Incumbent&, const Deadline&);

 private:
  const NeighbourhoodView& view_;
  std::vector<std::unique_ptr<NeighbourhoodLane>> lanes_;
};

}  // namespace alpa
