// What a step takes beside a checkpoint that is being written.
//
//   bench_saving [--steps N] [--check]
//
// Two data-parallel ranks train a GPT whose checkpoints have 160 MiB, and save after every 40 steps: of each
// 40 some are beside the save, some after it. Prints the medians of both, what a save holds training up for,
// and for comparison what it does where training waits. With --check the exit status says whether a step
// beside a save takes at most 1.1 times as long.
#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/commands/timed_runs.h"

namespace alpa {
namespace {

constexpr int kEvery = 40;
constexpr double kMost = 1.1;

const char* const kModel = R"(
base = "{}/configs/models/gpt.toml"
name = "gpt-saving"
[dimensions]
vocabulary = 8192
model = 384
layers = 6
heads = 6
[training]
batch = 8
sequence = 32
warmup_steps = 0
)";

struct Saves {
  std::vector<double> beside_s, after_s, stood_still_s;
};

/// A line of the metrics has the time that training stood still before its step: for a copy at the beginning
/// of a save, and when the checkpoint gets its name.
Saves read_saves(const std::string& metrics) {
  Saves saves;
  std::ifstream file(metrics);
  bool is_beside = false;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const int step = row.at("step");
    const bool is_after_copy = step > kEvery && step % kEvery == 1;
    if (!row.at("checkpoint_s").is_null()) is_beside = is_after_copy;
    if (is_after_copy) saves.stood_still_s.push_back(row.at("checkpoint_s"));
    if (step > 2) (is_beside ? saves.beside_s : saves.after_s).push_back(row.at("step_s"));
  }
  return saves;
}

int run(const std::vector<std::string>& words) {
  bool check = false;
  std::string steps = "200";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 < words.size() && words[i] == "--steps") steps = words[i + 1];
  }
  const TimedRuns runs;
  const std::string model = runs.written("model.toml", fmt::format(fmt::runtime(kModel), ALPA_SOURCE_DIR));
  const std::string plan = runs.path("plan.h5");
  runs.run(fmt::format(
      "alpa-plan {} --cluster {}/configs/clusters/local-4.toml --devices 2 --method data-parallel --out {}",
      model, ALPA_SOURCE_DIR, plan));
  const auto measured = [&](const std::string& how) {
    runs.run({.ranks = 2},
             fmt::format("alpa-train {} --data synthetic:8192 --run-dir {} --steps {} --checkpoint-every {} "
                         "--keep 1 --checkpoints {}",
                         plan, runs.path(how), steps, kEvery, how));
    return read_saves(runs.path(how) + "/metrics.jsonl");
  };
  const Saves async = measured("async"), sync = measured("sync");
  const double ratio = median(async.beside_s) / median(async.after_s);
  fmt::print(
      "step beside a save {:.1f} ms ({} of them), without {:.1f} ms ({}): {:.3f} times as long, at most {}\n",
      1e3 * median(async.beside_s), async.beside_s.size(), 1e3 * median(async.after_s), async.after_s.size(),
      ratio, kMost);
  fmt::print("training stands still for {:.1f} ms, for {:.1f} ms with --checkpoints sync\n",
             1e3 * median(async.stood_still_s), 1e3 * median(sync.stood_still_s));
  return !check || ratio <= kMost ? 0 : 1;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) { return alpa::run_bench("bench_saving", argc, argv, alpa::run); }
