#pragma once
#include <filesystem>
#include <functional>
#include <optional>

#include "libalpa/base/stop_request.h"

namespace alpa {

/// What a rank wants the run to do after a step; where ranks differ the greatest counts, so that a maximum
/// over ranks makes them agree.
enum class StopReason : int {
  none = 0,
  save_file = 1,  ///< save, and go on
  stop_file = 2,  ///< this and all below: save, and end with exit code 75
  end_time = 3,
  signal = 4,
};

bool ends_run(StopReason);

/// For the log, e.g. "the file STOP in the run folder".
const char* stop_reason_text(StopReason);

/// When a run has to be over. Times are seconds since 1970.
struct StopLimits {
  std::optional<double> end_time_s;  ///< of the job
  std::optional<double> max_run_s;   ///< from the start of the command
};

/// As options have them, where 0 means none.
StopLimits stop_limits(double end_time_s, double max_hours);

/// How long before the end a run stops: time for the step under way, twice the time of a save, and a minute,
/// or a quarter of the whole time where that is less than four minutes.
double stop_margin_s(double whole_run_s, double step_s, double checkpoint_s);

/// Looks for reasons to stop: a signal, the end of the time, the files STOP (which stays: who made it removes
/// it) and SAVE in the run folder.
class StopConditions {
 public:
  /// `looks_at_files` holds for one rank. `now_s` is the clock; the run starts with the construction. Keeps a
  /// reference to `request`.
  StopConditions(const std::filesystem::path& run_dir, const StopLimits& limits, const StopRequest& request,
                 bool looks_at_files, std::function<double()> now_s);

  /// The greatest reason on this rank, given how long a step and a save take. Files are looked for every two
  /// seconds.
  StopReason local_reason(double step_s, double checkpoint_s);

  /// To be called after each save: removes the file SAVE. One that cannot be removed is not looked at again.
  void saved();

 private:
  std::filesystem::path stop_file_, save_file_;
  const StopRequest& request_;
  bool looks_at_files_;
  std::function<double()> now_s_;
  double start_s_;
  std::optional<double> end_s_, looked_s_;
  StopReason from_files_ = StopReason::none;
  bool save_is_stuck_ = false;
};

/// The clock of the system.
double seconds_since_1970();

}  // namespace alpa
