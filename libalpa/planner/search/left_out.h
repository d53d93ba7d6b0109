#pragma once
#include <map>
#include <string>
#include <vector>

#include "libalpa/planner/search/planning_clock.h"

namespace alpa {

/// What planning had no time for. Keeps a reference to the clock.
class LeftOut {
 public:
  explicit LeftOut(const PlanningClock& clock) : clock_(clock) {}

  void note(const std::string& part, int micro_batches);  ///< it was not begun
  void note_cut_short();                                  ///< what is being done is not done to its end

  bool is_cut_short() const { return is_cut_short_; }
  bool is_nothing() const { return !is_cut_short_ && parts_.empty(); }

  std::string end_text() const;  ///< why planning ended, and in what
  std::string text() const;      ///< with what was not begun

 private:
  void note_place();

  const PlanningClock& clock_;
  bool is_cut_short_ = false;
  std::string cut_at_;                             ///< what was being done when the time was over
  std::map<std::string, std::vector<int>> parts_;  ///< micro-batches of each that was not begun
};

}  // namespace alpa
