#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace alpa {

/// Finds memory that two lanes use although nothing keeps them apart, by vector clocks (as FastTrack does,
/// PLDI'09): whatever order they happen to run in.
class RaceWatch {
 public:
  explicit RaceWatch(std::size_t lanes) : clocks_(lanes, Clock(lanes, 0)) {}

  /// What is known to be done on each lane.
  using Clock = std::vector<std::int64_t>;

  /// That what follows on the lane starts after what was recorded.
  void wait(int lane, const Clock& recorded);
  /// The clock of all that the lane has done.
  Clock record(int lane) const { return clocks_[lane]; }

  /// An instruction begins on the lane; what it touches from now on is its doing. `name` outlives the watch.
  void begin(int lane, const std::string* name);
  /// It uses bytes [begin, end). Throws Error(run_time) naming both where another lane may still use them.
  void touch(std::int64_t begin, std::int64_t end, bool writes);

 private:
  struct Use {
    int lane = -1;
    std::int64_t number = 0;  ///< among the lane's instructions
    const std::string* name = nullptr;
  };
  struct Bytes {
    std::int64_t end = 0;
    Use written;
    std::vector<Use> read;  ///< since then
  };

  void split_at(std::int64_t byte);
  void check(const Use& other, bool writes) const;

  std::vector<Clock> clocks_;
  std::map<std::int64_t, Bytes> bytes_;  ///< by their begin
  Use now_;
};

}  // namespace alpa
