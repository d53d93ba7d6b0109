// How long planning takes, and how good plans are.
//   bench_planning [--only speed|quality] [--check]
// Prints a table of each, and how many targets were reached; with --check the exit status says so.
#include "tests/planner/planning_bench.h"

#include <fmt/core.h>

#include <string>

#include "libalpa/base/error.h"

int main(int argc, char** argv) {
  std::string only;
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check") {
      check = true;
    } else if (word == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      only = "?";
      break;
    }
  }
  if (!only.empty() && only != "speed" && only != "quality") {
    fmt::print(stderr, "usage: bench_planning [--only speed|quality] [--check]\n");
    return 2;
  }
  try {
    const alpa::PlanningTargets targets = alpa::read_planning_targets();
    alpa::TargetCount count;
    if (only != "quality") alpa::bench_speed(targets.speed, count);
    if (only != "speed") alpa::bench_quality(targets.quality, count);
    fmt::print("{} of {} targets reached\n", count.reached, count.all);
    return check && count.reached < count.all ? 1 : 0;
  } catch (const alpa::Error& error) {
    fmt::print(stderr, "bench_planning: {}\n", error.what());
    return 2;
  }
}
