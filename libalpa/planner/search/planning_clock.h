#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "libalpa/base/deadline.h"
#include "libalpa/base/log.h"

namespace alpa {

/// How long planning may take, and how far it has come: while it goes on, a line at an interval says what is
/// done, the best plan so far and the time. A stop that is asked for ends the time. May be shared by threads.
class PlanningClock {
 public:
  /// `stop` may be null, and must outlive this.
  PlanningClock(double time_limit_s, Log&, const StopRequest* stop = nullptr, double interval_s = 5);
  ~PlanningClock();
  PlanningClock(const PlanningClock&) = delete;
  PlanningClock& operator=(const PlanningClock&) = delete;

  bool is_over() const { return deadline_.passed(); }
  bool is_stopped() const { return deadline_.stop() && deadline_.stop()->is_asked(); }
  /// What was found until then is put together, for no longer than that.
  bool is_long_over() const { return left_s() < -kPuttingTogether_s; }
  double left_s() const { return deadline_.seconds_left(); }
  const StopRequest* stop() const { return deadline_.stop(); }

  /// What is being done from here on, in so many parts; 0: not known how many.
  void begin(const std::string& phase, int parts);
  void one_done();

  void found(double step_s);           ///< of a plan that fits
  void bounded(double lower_bound_s);  ///< on the plans that were searched so far

  std::string where() const;  ///< "search with 8 micro-batches: meshes priced, 12 of 131"
  std::string line() const;   ///< that, the best so far and the time
  std::string end() const;    ///< why it is over: "the search was stopped (SIGINT)"

 private:
  static constexpr double kPuttingTogether_s = 2;

  void report(double interval_s);

  const double time_limit_s_;
  const Deadline deadline_;
  Log& log_;
  mutable std::mutex mutex_;  ///< of all below
  std::string phase_;
  double began_s_ = 0;
  int parts_ = 0, done_ = 0;
  std::optional<double> best_s_, bound_s_;
  bool ends_ = false;
  std::condition_variable end_;
  std::thread reporter_;
};

}  // namespace alpa
