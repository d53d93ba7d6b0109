#include "libalpa/program/lower/message_slots.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace alpa {
namespace {

/// Walks through the runs of all meshes; where they are stuck, gives a sender another slot.
class RunWalk {
 public:
  RunWalk(const std::vector<std::vector<StageRun>>& orders, const std::vector<Way>& ways)
      : orders_(orders), ways_(ways), at_(orders.size()), sent_(ways.size()), received_(ways.size()) {
    for (const Way& way : ways) slots_.push_back(first_slots(way));
  }

  std::vector<std::int64_t> slots() {
    do {
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t mesh = 0; mesh < orders_.size(); ++mesh)
          while (at_[mesh] < orders_[mesh].size() && may_run(orders_[mesh][at_[mesh]])) {
            finish(orders_[mesh][at_[mesh]++]);
            moved = true;
          }
      }
    } while (give_slot());
    return std::move(slots_);
  }

 private:
  std::int64_t first_slots(const Way& way) const {
    const int apart = std::abs(way.to_stage - way.from_stage);
    if (apart <= 1) return 1;
    const StageIndex earlier = std::min(way.from_stage, way.to_stage);
    std::vector<StageRun> of_earlier;
    for (const std::vector<StageRun>& order : orders_)
      std::ranges::copy_if(order, std::back_inserter(of_earlier),
                           [&](const StageRun& run) { return run.stage == earlier; });
    return std::min(apart + 1, std::max(1, most_in_flight(of_earlier)));
  }

  bool carries(const Way& way, const StageRun& run) const {
    return way.backward ? run.kind == SegmentKind::backward || run.kind == SegmentKind::backward_inputs
                        : run.kind == SegmentKind::forward;
  }

  bool has_arrived(const StageRun& run) const {
    for (std::size_t w = 0; w < ways_.size(); ++w)
      if (ways_[w].to_stage == run.stage && carries(ways_[w], run) && sent_[w] <= run.micro_batch)
        return false;
    return true;
  }

  /// The farthest way of this run of those whose slots are all taken; -1: none.
  int full(const StageRun& run) const {
    int farthest = -1;
    for (std::size_t w = 0; w < ways_.size(); ++w)
      if (ways_[w].from_stage == run.stage && carries(ways_[w], run) &&
          sent_[w] - received_[w] >= slots_[w] && (farthest < 0 || distance(w) > distance(farthest)))
        farthest = static_cast<int>(w);
    return farthest;
  }

  int distance(std::size_t way) const {
    const Way& of = ways_[way];
    return std::abs(of.to_stage - of.from_stage);
  }

  bool may_run(const StageRun& run) const { return has_arrived(run) && full(run) < 0; }

  /// What a run waits for has arrived when it begins, not when it ends.
  void finish(const StageRun& run) {
    for (std::size_t w = 0; w < ways_.size(); ++w) {
      if (!carries(ways_[w], run)) continue;
      if (ways_[w].from_stage == run.stage) ++sent_[w];
      if (ways_[w].to_stage == run.stage) ++received_[w];
    }
  }

  /// Whether that may help: a mesh that has all it needs waits for what it sent. Circles are of values that
  /// pass stages by, so the one that passes most gets the slot.
  bool give_slot() {
    int farthest = -1;
    for (std::size_t mesh = 0; mesh < orders_.size(); ++mesh) {
      if (at_[mesh] == orders_[mesh].size()) continue;
      const StageRun& run = orders_[mesh][at_[mesh]];
      const int way = has_arrived(run) ? full(run) : -1;
      if (way >= 0 && (farthest < 0 || distance(way) > distance(farthest))) farthest = way;
    }
    if (farthest < 0) return false;
    ++slots_[farthest];
    return true;
  }

  const std::vector<std::vector<StageRun>>& orders_;
  const std::vector<Way>& ways_;
  std::vector<std::size_t> at_;       ///< [mesh] runs done
  std::vector<std::int64_t> slots_;   ///< [way]
  std::vector<int> sent_, received_;  ///< [way]
};

}  // namespace

std::vector<std::int64_t> message_slots(const std::vector<std::vector<StageRun>>& orders,
                                        const std::vector<Way>& ways) {
  return RunWalk(orders, ways).slots();
}

}  // namespace alpa
