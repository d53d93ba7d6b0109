// Solves instances of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism and compares with the
// lowest costs known (iopddl_targets.txt).
//
//   bench_solver FOLDER [--mode 10s|official] [--only A,M] [--threads N] [--check]
//
// FOLDER holds asplos-2025-iopddl-*.json.gz. Mode 10s, the default, takes 10 seconds for each instance,
// official the time limit of the contest: for all eight of the targets up to 26 minutes. With --check the
// exit status says whether all targets were reached.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/solver/selection/contest_instance.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace {

using namespace alpa;

struct Known {
  double limit_s = 0, cost = 0;
};

struct Target {
  std::string mode, what;
  double number = 0;
  std::string instances;  // "": all

  bool is_of(const std::string& name) const {
    return instances.empty() || ("," + instances + ",").find("," + name + ",") != std::string::npos;
  }
};

struct Result {
  std::string name;
  bool feasible = false;
  double ratio = 0, gap_percent = 100, overtime_s = 0;
};

struct Arguments {
  std::filesystem::path folder;
  std::string mode = "10s", only;
  int threads = 0;
  bool check = false;
};

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    const auto value = [&] { return std::string(k + 1 < argc ? argv[++k] : ""); };
    if (word == "--check")
      arguments.check = true;
    else if (word == "--mode")
      arguments.mode = value();
    else if (word == "--only")
      arguments.only = value();
    else if (word == "--threads")
      arguments.threads = std::atoi(value().c_str());
    else
      arguments.folder = word;
  }
  if (arguments.folder.empty() || (arguments.mode != "10s" && arguments.mode != "official"))
    throw Error(ErrorKind::usage, "no folder, or a mode that there is not",
                "bench_solver FOLDER [--mode 10s|official] [--only A,M] [--threads N] [--check]");
  return arguments;
}

void read_targets(std::map<std::string, Known>& known, std::vector<Target>& targets) {
  std::ifstream file(ALPA_SOURCE_DIR "/tests/solver/iopddl_targets.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "instance") {
      words >> name;
      words >> known[name].limit_s >> known[name].cost;
    } else if (kind == "target") {
      Target& target = targets.emplace_back();
      words >> target.mode >> target.what >> target.number >> target.instances;
    }
  }
}

// The files of the folder by the instances' names.
std::map<std::string, std::filesystem::path> instances_in(const std::filesystem::path& folder) {
  std::map<std::string, std::filesystem::path> files;
  const std::string prefix = "asplos-2025-iopddl-";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.find(".json") != std::string::npos)
      files[name.substr(prefix.size(), name.find(".json") - prefix.size())] = entry.path();
  }
  return files;
}

Result solve(const std::string& name, const std::filesystem::path& file, double limit_s, double known,
             int threads) {
  const double started_s = monotonic_s();
  const ContestInstance instance = read_contest_instance(file);
  SelectionOptions options;
  options.effort = kUnlimitedEffort;
  options.threads = thread_count(threads);
  options.certify = true;
  options.time_limit_s = limit_s - std::clamp(0.02 * limit_s, 0.1, 0.8) - (monotonic_s() - started_s);
  const SelectionSolution solution = solve_selection(instance.problem, options);
  const double seconds = monotonic_s() - started_s;
  Result result{name, solution.feasible, 0, 100, std::max(0.0, seconds - limit_s)};
  if (!solution.feasible) {
    fmt::print("{:8} {:>16} {:>16.0f} {:>9} {:>9} {:>7.1f}  {}\n", name, "none", solution.certified_bound, "",
               "", seconds, solution.proof);
    return result;
  }
  result.gap_percent = 100 * (solution.cost - solution.certified_bound) / std::max(solution.cost, 1e-300);
  result.ratio = known > 0 ? known / solution.cost : 1;
  fmt::print("{:8} {:>16} {:>16.0f} {:>8.3f}% {:>9} {:>7.1f}  {}\n", name,
             decimal_text(contest_cost(instance, solution.choice)), solution.certified_bound,
             result.gap_percent, known > 0 ? fmt::format("{:.6f}", result.ratio) : "unknown", seconds,
             solution.proof);
  std::fflush(stdout);
  return result;
}

// What the target is about, and whether that is enough.
std::pair<double, bool> outcome_of(const Target& target, const std::vector<Result>& results) {
  double sum = 0, least = infinity, gap = 0, overtime = 0;
  int count = 0, better = 0, feasible = 0;
  for (const Result& result : results) {
    if (!target.is_of(result.name)) continue;
    ++count;
    sum += result.ratio;
    least = std::min(least, result.ratio);
    better += result.ratio > 1;
    feasible += result.feasible;
    gap = std::max(gap, result.gap_percent);
    overtime = std::max(overtime, result.overtime_s);
  }
  const auto at_least = [&](double value) { return std::pair{value, value >= target.number}; };
  const auto at_most = [&](double value) { return std::pair{value, value <= target.number}; };
  if (target.what == "mean_ratio") return at_least(count > 0 ? sum / count : 0);
  if (target.what == "least_ratio") return at_least(least);
  if (target.what == "better") return at_least(better);
  if (target.what == "feasible") return at_least(count > 0 ? static_cast<double>(feasible) / count : 0);
  if (target.what == "gap_percent") return at_most(gap);
  return at_most(overtime);
}

int run(const Arguments& arguments) {
  std::map<std::string, Known> known;
  std::vector<Target> targets;
  read_targets(known, targets);
  const bool is_official = arguments.mode == "official";
  fmt::print("{:8} {:>16} {:>16} {:>9} {:>9} {:>7}\n", "instance", "cost", "certified bound", "gap", "ratio",
             "s");
  std::vector<Result> results;
  for (const auto& [name, file] : instances_in(arguments.folder)) {
    if (!arguments.only.empty() && !Target{"", "", 0, arguments.only}.is_of(name)) continue;
    const bool is_known = known.contains(name);
    const double limit_s = !is_official ? 10 : is_known ? known[name].limit_s : 60;
    results.push_back(solve(name, file, limit_s, is_known ? known[name].cost : 0, arguments.threads));
  }
  int reached = 0, count = 0;
  for (const Target& target : targets) {
    if (target.mode != arguments.mode) continue;
    const auto [value, is_reached] = outcome_of(target, results);
    ++count;
    reached += is_reached;
    fmt::print("{:7} {} of {}: {:.4f}, target {}\n", is_reached ? "reached" : "missed", target.what,
               target.instances.empty() ? "all" : target.instances, value, target.number);
  }
  fmt::print("{} of {} targets reached\n", reached, count);
  return arguments.check && reached < count ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(arguments_of(argc, argv));
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_solver: {}\n", error.what());
  return EXIT_FAILURE;
}
