#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/plan_file.h"
#include "tests/h5/temporary_folder.h"
#include "tests/planner/planning_bench.h"

namespace alpa {
namespace {

constexpr int kInfeasible = 4;  ///< exit status of alpa-plan
constexpr double kGibi = 1024.0 * 1024 * 1024;

struct Run {
  double seconds = 0, memory_gib = 0;
  int status = -1;
  std::string planned;  ///< in words
};

class Bench {
 public:
  /// `cache`: a file of the bench's own; "": none.
  Run plan(const SpeedTarget& wanted, std::int64_t devices = 0, const std::string& cache = "") {
    const std::string out = (folder_.path() / "plan.h5").string(), log = (folder_.path() / "log").string();
    std::vector<std::string> words{ALPA_BIN "/alpa-plan",
                                   model_of(wanted),
                                   "--cluster",
                                   file("clusters", wanted.cluster),
                                   "--out",
                                   out,
                                   "--force",
                                   "--time-limit",
                                   "720",
                                   "--devices",
                                   std::to_string(devices)};
    if (!cache.empty()) words.insert(words.end(), {"--cache", (folder_.path() / cache).string()});
    Run run = run_words(words, log);
    if (run.status == 0) {
      const Plan made = read_plan(out);
      const double gap = made.prediction.gap().value_or(0);
      run.planned =
          fmt::format("{} stages, {} micro-batches, {} a step, {:.1f} % above its bound{}, by {}",
                      made.stages.size(), made.micro_batches, seconds_text(made.prediction.step_s), 100 * gap,
                      made.prediction.hit_time_limit ? " (time limit)" : "", made.method);
    } else {
      std::ifstream lines(log);
      for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("  ")) run.planned = line;
    }
    return run;
  }

 private:
  static std::string file(const std::string& kind, const std::string& name) {
    return ALPA_SOURCE_DIR "/configs/" + kind + "/" + name + ".toml";
  }

  std::string model_of(const SpeedTarget& wanted) {
    if (wanted.optimizer.empty()) return file("models", wanted.model);
    const std::string path = (folder_.path() / (wanted.model + ".toml")).string();
    std::ofstream(path) << fmt::format("base = \"{}\"\nname = \"{}-{}\"\n[training]\noptimizer = \"{}\"\n",
                                       file("models", wanted.model), wanted.model, wanted.optimizer,
                                       wanted.optimizer);
    return path;
  }

  static Run run_words(std::vector<std::string>& words, const std::string& log) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
      if (!freopen(log.c_str(), "w", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0) _exit(127);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    Run run;
    int status = 0;
    rusage used{};
    if (child < 0 || wait4(child, &status, 0, &used) != child)
      throw Error(ErrorKind::run_time, "alpa-plan was not run", "memory for another process");
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    run.memory_gib = static_cast<double>(used.ru_maxrss) * 1024 / kGibi;
    run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return run;
  }

  TemporaryFolder folder_;
};

/// Of y ~ x^exponent, by least squares of the logarithms.
double fitted_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double lx = std::log(x[i]), ly = std::log(y[i]);
    sx += lx, sy += ly, sxx += lx * lx, sxy += lx * ly;
  }
  const double n = static_cast<double>(x.size());
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

void bench_kept(Bench& bench, const SpeedTargets& targets, TargetCount& count) {
  const double cold_s = bench.plan(targets.kept, 0, "cache.h5").seconds;
  const double warm_s = bench.plan(targets.kept, 0, "cache.h5").seconds;
  fmt::print("{:<18}with --cache {:.1f} s, again {:.1f} s: {:.1f} of {:.0f} times as fast{}\n",
             targets.kept.model, cold_s, warm_s, cold_s / warm_s, targets.least_gain,
             count.mark(cold_s / warm_s >= targets.least_gain));
}

}  // namespace

void bench_speed(const SpeedTargets& targets, TargetCount& count) {
  Bench bench;
  for (const SpeedTarget& wanted : targets.cases) {
    const Run made = bench.plan(wanted);
    const bool as_wanted = made.status == (wanted.refused ? kInfeasible : 0);
    const bool is_reached =
        as_wanted && made.seconds <= wanted.seconds && made.memory_gib <= targets.largest_memory_gib;
    fmt::print("{:<18}{:<8}{:<16}{:8.1f} s of {:5.0f} s {:6.2f} GiB{}\n    {}\n", wanted.model,
               wanted.optimizer, wanted.cluster, made.seconds, wanted.seconds, made.memory_gib,
               count.mark(is_reached), made.planned);
    std::fflush(stdout);
  }
  std::vector<double> devices, seconds;
  for (const std::int64_t number : targets.devices) {
    const Run made = bench.plan(targets.scaling, number);
    fmt::print("{:<18}{:>4} devices {:8.1f} s\n    {}\n", targets.scaling.model, number, made.seconds,
               made.planned);
    std::fflush(stdout);
    devices.push_back(static_cast<double>(number));
    seconds.push_back(made.seconds);
  }
  const double exponent = fitted_exponent(devices, seconds);
  fmt::print("seconds grow with the devices to the {:.2f} of {:.1f}{}\n", exponent, targets.largest_exponent,
             count.mark(exponent <= targets.largest_exponent));
  std::fflush(stdout);  // else what runs next prints it too
  bench_kept(bench, targets, count);
}

}  // namespace alpa
