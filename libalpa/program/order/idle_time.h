#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "libalpa/program/order/dependences.h"
#include "libalpa/program/order/rank_rows.h"

namespace alpa {

/// A time in which a lane of a rank does nothing.
struct IdleTime {
  int lane = 0;
  double start_s = 0, end_s = 0;
  std::string for_what = {};  ///< "einsum block.0.mlp.up", "send 3 of rank 0"; "": not known
};

/// What lanes wait for between their rows. What was done last of all that a row has to wait for is what it
/// waited for, if that was done while its lane did nothing.
class IdleTimes {
 public:
  /// Keeps references.
  IdleTimes(const std::vector<RankRows>&, const Program&, const Graph&);

  /// All of one rank until `end_s`: with the rows of a lane they fill that time.
  std::vector<IdleTime> of(const RankRows&, double end_s) const;

 private:
  using Place = std::tuple<int, int, int>;  ///< segment, micro-batch (0: the update), instruction
  struct Done {
    double at_s = 0;
    std::string what = {};
  };
  /// That a row of `of` is done is what the waiting rank waits for, if nothing else is done later.
  void note(Done&, const RankRows& waiting, const RankRows& of, const TimelineRow&) const;
  Done waited_for(const RankRows&, const TimelineRow&, const TimelineRow* before_in_turn) const;

  const std::vector<RankRows>& ranks_;
  const Program& program_;
  const Graph& graph_;
  std::vector<Dependences> waits_;
  std::vector<RunTable> runs_;
  std::map<DeviceIndex, std::map<Place, const TimelineRow*>> rows_;
  /// By transfer and micro-batch.
  std::map<std::pair<int, int>, std::vector<std::pair<const RankRows*, const TimelineRow*>>> sends_;
};

}  // namespace alpa
