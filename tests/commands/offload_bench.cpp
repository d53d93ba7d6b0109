// What moving ahead of use, and beside computation, gains where states or activations rest in the host's
// memory, beside what is predicted.
//
//   bench_offload [--check] [--rounds N] [--steps N]
//
// A perceptron of equal layers on one emulated device, which takes half as much again as that has memory;
// with updates in the next forward, beside which activations lie, a third. Of activations, most is what a
// large batch saves, in two micro-batches. What is moved takes as long as the computation. Medians of rounds
// in turn. Targets stand in offload_targets.toml; with --check the exit status says whether all are reached.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "libalpa/base/toml_document.h"
#include "libalpa/plan/plan_file.h"
#include "tests/commands/timed_runs.h"

namespace alpa {
namespace {

constexpr double kTflops = 0.2;  // so that a step takes some 70 ms or 100 ms, and an update next to nothing

struct Case {
  int width, layers, batch, micro_batches;
  double more;  ///< times what the device has
  const char *offload, *updates;
};
constexpr Case kCases[]{{1024, 8, 256, 1, 1.5, "optimizer", "after-norm"},
                        {1024, 8, 256, 1, 1.3, "optimizer", "next-forward"},
                        {256, 16, 4096, 2, 1.5, "activations", "after-norm"}};

struct Options {
  int rounds = 3, steps = 12;
  double of_prediction = 1;
};

class Measuring {
 public:
  Measuring(const Options& options, const Case& of) : options_(options), case_(of) {
    model_ = runs_.written("model.toml", perceptron(of.width, of.layers, of.batch));
  }

  Plan plan(const std::string& name, double memory_gib, double host_gb_per_s,
            const std::string& options) const {
    const std::string cluster =
        runs_.written("cluster.toml", fmt::format(R"(
name = "device"
device = "emulated"
nodes = 1
devices_per_node = 1
memory_gib = {:.15g}
f32_tflops = {}
memory_gb_per_s = 500
host_gb_per_s = {:.15g}
launch_us = 0
within_node = {{ latency_us = 5, gb_per_s = 3 }}
)",
                                                  memory_gib, kTflops, host_gb_per_s));
    runs_.run(
        fmt::format("alpa-plan {} --cluster {} --method serial --micro-batches {} --rematerialize never "
                    "{} --force --out {}",
                    model_, cluster, case_.micro_batches, options, runs_.path(name + ".h5")));
    return read_plan(runs_.path(name + ".h5"));
  }

  /// [way] Seconds of a step.
  std::vector<double> run(const std::vector<std::string>& plans) const {
    std::vector<std::vector<double>> seconds(plans.size());
    for (int round = 0; round < options_.rounds; ++round)
      for (std::size_t p = 0; p < plans.size(); ++p) {
        const std::string run = runs_.path(fmt::format("run{}", number_++));
        runs_.run({}, fmt::format("alpa-train {} --data synthetic:{} --threads 1 --steps {} --run-dir {} "
                                  "--device emulated",
                                  runs_.path(plans[p] + ".h5"), 4 * case_.batch, options_.steps, run));
        seconds[p].push_back(TimedRuns::steps(run + "/emulated.jsonl").median_s);
      }
    std::vector<double> medians;
    for (const std::vector<double>& of_plan : seconds) medians.push_back(median(of_plan));
    return medians;
  }

 private:
  const Options& options_;
  const Case& case_;
  TimedRuns runs_;
  std::string model_;
  mutable int number_ = 0;  ///< of the next run
};

int run(const std::vector<std::string>& words) {
  bool check = false;
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 < words.size() && words[i] == "--rounds") options.rounds = std::stoi(words[i + 1]);
    if (i + 1 < words.size() && words[i] == "--steps") options.steps = std::stoi(words[i + 1]);
  }
  TomlDocument document = read_toml(ALPA_SOURCE_DIR "/tests/commands/offload_targets.toml");
  options.of_prediction = document.root().number("of_prediction");
  document.finish();
  HeldTargets tally;
  for (const Case& of : kCases) {
    const Measuring at(options, of);
    const Prediction free = at.plan("free", 8, 1, "").prediction;
    const double limit_gib = static_cast<double>(free.meshes.front().memory.total) / of.more / (1 << 30);
    const std::string offloading =
        fmt::format("--offload {} --updates {} --overlap ", of.offload, of.updates);
    // What is moved does not depend on the rate.
    const Prediction moved = at.plan("moved", limit_gib, 1, offloading + "none").prediction;
    const double bytes = 2.0 * of.micro_batches * static_cast<double>(moved.meshes.front().memory.host),
                 rate = bytes / free.step_s;
    fmt::print("{:.1f} MiB on a device of {:.1f} MiB; {} moved at {:.2f} GB/s, updates {}\n",
               1024 * of.more * limit_gib, 1024 * limit_gib, of.offload, rate / 1e9, of.updates);
    const std::vector<std::string> ways{"none", "all"};
    std::vector<double> predicted;
    for (const std::string& way : ways)
      predicted.push_back(at.plan(way, limit_gib, rate / 1e9, offloading + way).prediction.step_s);
    const std::vector<double> measured = at.run(ways);
    for (std::size_t w = 0; w < ways.size(); ++w)
      fmt::print("  --overlap {:<5} predicted {:>7.1f} ms, measured {:>7.1f} ms\n", ways[w],
                 1e3 * predicted[w], 1e3 * measured[w]);
    const double gained = (measured[0] - measured[1]) / (predicted[0] - predicted[1]);
    tally.hold(fmt::format("of the gain that is predicted, at least {}", options.of_prediction), gained,
               predicted[1] < predicted[0] && gained >= options.of_prediction);
  }
  return tally.finish() || !check ? 0 : 1;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) { return alpa::run_bench("bench_offload", argc, argv, alpa::run); }
