#include "apps/solve_instance.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/json.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/options.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/solver/selection/contest_instance.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace alpa {
namespace {

// The least integer that is not below the bound; costs of an instance are integers.
std::string bound_text(double bound) {
  return std::isinf(bound) ? "none" : fmt::format("{:.0f}", std::ceil(bound));
}

// A line where the cost falls or the bound rises, every few seconds at most.
class SolveProgress {
 public:
  explicit SolveProgress(double started_s, Log& log) : started_s_(started_s), log_(log) {}

  void operator()(const SelectionProgress& now) {
    constexpr double period_s = 2;
    const double seconds = monotonic_s() - started_s_;
    if (seconds < reported_s_ + period_s || (now.cost >= cost_ && now.lower_bound <= bound_)) return;
    reported_s_ = seconds, cost_ = now.cost, bound_ = now.lower_bound;
    log_.info(fmt::format("{:.1f} s: cost {}, bound {}", seconds,
                          std::isinf(now.cost) ? "none yet" : fmt::format("{:.0f}", now.cost),
                          bound_text(now.lower_bound)));
  }

 private:
  double started_s_, reported_s_ = -1e9, cost_ = infinity, bound_ = -infinity;
  Log& log_;
};

}  // namespace

void describe(SolveOptions& o, OptionsVisitor& visit) {
  visit.field("time_limit", o.time_limit_s, "seconds for all of it; ends before where the optimum is proven",
              at_least(1));
  visit.field("threads", o.threads, "threads that search; 0: as many as the process may run on",
              between(0, kMostThreads));
}

int solve_instance(const std::filesystem::path& file, const std::filesystem::path& solution_file,
                   const SolveOptions& settings, Log& log) {
  const double started_s = monotonic_s();
  const StopRequest stop;
  AtomicFile{solution_file};  // a folder that cannot be written is noticed before the search
  const ContestInstance instance = read_contest_instance(file);
  SolveProgress progress(started_s, log);
  SelectionOptions options;
  options.effort = kUnlimitedEffort;
  options.threads = thread_count(settings.threads);
  options.certify = true;
  options.stop = &stop;
  options.progress = [&](const SelectionProgress& now) { progress(now); };
  // What is under way when the time is over has to end, and the solution to be written.
  const double reserve_s = std::clamp(0.02 * settings.time_limit_s, 0.1, 0.8);
  options.time_limit_s = std::max(0.0, settings.time_limit_s - reserve_s - (monotonic_s() - started_s));
  const SelectionSolution solution = solve_selection(instance.problem, options);
  if (!solution.feasible)
    throw Error(
        ErrorKind::infeasible, fmt::format("'{}': {}", file.string(), solution.proof),
        solution.hit_time_limit ? "a longer --time-limit" : "a larger usage_limit, or fewer forbidden pairs");
  JsonArray choice;
  for (const int strategy : solution.choice) choice.add(strategy);
  publish_text(solution_file, choice.text() + "\n");
  const double gap = solution.cost > 0 ? (solution.cost - solution.certified_bound) / solution.cost : 0;
  fmt::print("cost {}  bound {}  gap {:.4f} %  {:.2f} s  ({})\n",
             decimal_text(contest_cost(instance, solution.choice)), bound_text(solution.certified_bound),
             100 * gap, monotonic_s() - started_s, solution.proof);
  if (!stop.is_asked()) return 0;
  log.warning(fmt::format("'{}' holds the best choice so far", solution_file.string()));
  return static_cast<int>(ErrorKind::stopped_early);
}

}  // namespace alpa
