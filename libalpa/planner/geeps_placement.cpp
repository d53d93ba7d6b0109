#include "libalpa/planner/geeps_placement.h"

#include <algorithm>
#include <map>

namespace alpa {
namespace {

class Placing {
 public:
  Placing(std::span<const CachedItem> items, std::int64_t capacity)
      : items_(items), left_(capacity), stays_(items.size(), false) {
    for (const CachedItem& item : items) moved_[item.use] += item.bytes;
  }

  std::vector<bool> run() {
    std::int64_t all = 0;
    for (const CachedItem& item : items_) all += item.bytes;
    if (all <= left_) return std::vector<bool>(items_.size(), true);
    while (place_of_largest_use() || place_any()) {
    }
    return stays_;
  }

 private:
  /// The largest use and the most of any other.
  struct Peaks {
    int use = 0;
    std::int64_t first = 0, second = 0;
  };
  Peaks peaks() const {
    Peaks found;
    for (const auto& [use, bytes] : moved_)
      if (bytes > found.first)
        found = {use, bytes, found.first};
      else
        found.second = std::max(found.second, bytes);
    return found;
  }

  bool place_of_largest_use() {
    const Peaks peak = peaks();
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (!stays_[i] && items_[i].use == peak.use &&
          items_[i].bytes + 2 * std::max(peak.first - items_[i].bytes, peak.second) <= left_)
        return place(i);
    return false;
  }

  bool place_any() {
    const std::int64_t buffers = 2 * peaks().first;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (!stays_[i] && items_[i].bytes + buffers <= left_) return place(i);
    return false;
  }

  bool place(std::size_t i) {
    stays_[i] = true;
    left_ -= items_[i].bytes;
    moved_[items_[i].use] -= items_[i].bytes;
    return true;
  }

  std::span<const CachedItem> items_;
  std::int64_t left_;                  ///< for buffers and what stays beside that
  std::map<int, std::int64_t> moved_;  ///< by use
  std::vector<bool> stays_;
};

}  // namespace

std::vector<bool> geeps_placement(std::span<const CachedItem> items, std::int64_t capacity) {
  return Placing(items, capacity).run();
}

}  // namespace alpa
