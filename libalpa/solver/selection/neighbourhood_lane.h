#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/elimination.h"
#include "libalpa/solver/selection/local_search.h"
#include "libalpa/solver/selection/regions.h"

namespace alpa {

/// What lanes look at together and none changes. Borrows the network and its incident edges.
struct NeighbourhoodView {
  enum class Memory {
    limited,  ///< prices only guide the search
    paid,     ///< there is no limit; the objective has the price of the memory in it
  };
  NeighbourhoodView(const SelectionNetwork&, const std::vector<std::vector<int>>& incident,
                    const std::vector<double>& price, Memory = Memory::limited);

  const SelectionNetwork& network;
  const std::vector<std::vector<int>>& incident;
  const std::vector<double> price;
  const Memory memory;
  std::vector<std::vector<double>> paid;  ///< per node and strategy, the price of its memory
};

/// Nodes with the strategies that they switched to.
using Switches = std::vector<std::pair<int, int>>;

/// One walk of a large-neighbourhood search: see search_neighbourhoods(). What it lowers is the cost and a
/// penalty for each byte over capacity at each time, which grows where an overload stays and shrinks when
/// nothing has been gained for long: so the walk crosses what does not fit. Borrows the view.
class NeighbourhoodLane {
 public:
  NeighbourhoodLane(const NeighbourhoodView&, std::uint64_t seed);

  void start_from(const std::vector<int>& choice);
  const std::vector<int>& choice() const { return local_search_.choice(); }
  double objective() const { return cost_ + overload_; }  ///< cost and penalty of the present choice
  const Incumbent& best() const { return best_; }         ///< cheapest choice that fitted since start_from()

  /// Chooses regions anew until so many table entries were looked at or the deadline passes. Returns the
  /// steps that were taken.
  std::vector<Switches> walk(double work, const Deadline&);

  /// Takes a step of another lane where it still fits and gains.
  void follow(const Switches&);

 private:
  struct Arm;
  enum class Outcome { taken, same, dearer, too_large };

  double attempt(Arm&, Dice&, const Deadline&);
  std::vector<int> draw_region(const Arm&, Dice&);
  void gather(const std::vector<int>& members);
  double local_cost(const std::vector<int>& members) const;
  double penalty() const;
  void sum_overloads();
  void adapt_penalties(double work);
  Outcome take_over(const std::vector<int>& members, const std::vector<int>& choice, const Deadline&);

  struct Arm {
    bool is_crowded = false;
    int size = 0;
    double table_cells = 0;
    double gain = 0, work = 0;  // of late
  };

  const NeighbourhoodView& view_;
  const SelectionNetwork& network_;
  std::uint64_t seed_, number_ = 0;
  LocalSearch local_search_;
  Regions regions_;
  std::vector<Arm> arms_;
  double scale_ = 0.5;                                      // of prices, at which regions just fit
  std::vector<std::vector<double>> base_cost_, node_cost_;  // of the members of the present region
  std::vector<char> is_member_;
  std::vector<double> weight_;          // penalty per byte and time point
  std::vector<double> overload_price_;  // sum of weight_ over earlier time points that are over capacity
  std::vector<Switches> steps_;
  Incumbent best_;
  double cost_ = 0, overload_ = 0;  // of the present choice
  double gained_ = 0, since_adapted_ = 0, since_gain_ = 0;
};

}  // namespace alpa
