// How much of their communication pipelines and data-parallel ranks hide.
//
//   bench_overlap [--check] [--rounds N] [--steps N] [--only CASE]
//
// Four emulated hosts of one rank, joined by 1 Gbit/s; computations are emulated, and as fast as the case
// says: a transfer between stages takes so many times the forward of a stage. The same plan without overlap,
// with it, and between hosts whose links take next to no time (the schedule's own bubble stays): what hiding
// all would reach. Medians of rounds in turn. Targets stand in overlap_targets.toml; with --check the exit
// status says whether all are reached.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "libalpa/base/toml_document.h"
#include "libalpa/plan/plan_file.h"
#include "tests/commands/timed_runs.h"

namespace alpa {
namespace {

constexpr int kHosts = 4;
constexpr double kMbit = 1000;
constexpr double kTflops = 0.25;  // with which summing gradients takes about as long as a backward

/// A way to run the model.
struct Way {
  const char* name;
  const char* options;  ///< of alpa-plan
  bool is_ideal = false;
};

struct Case {
  const char* name;
  const char* model;
  /// Where transfers take as long as forwards, messages of some 600 KB: an idle emulated link passes 93 KiB at
  /// once (emulated_hosts.sh), much of a shorter message.
  int batch;
  double transfer_over_forward;  ///< 0: devices have kTflops
  std::vector<Way> ways;         ///< the first without overlap
};

const char* const kGpt = R"(
base = "{}/configs/models/gpt-demo.toml"
name = "gpt-overlap"
[dimensions]
layers = 12
[training]
batch = {}
)";
const char* const kUnet = R"(
base = "{}/configs/models/unet.toml"
name = "unet-overlap"
[dimensions]
size = 32
channels = 32
times = 8
context = 4
context_model = 8
heads = 4
groups = 4
[training]
batch = {}
)";

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"GPT, transfers as long as forwards",
       kGpt,
       256,
       1,
       {{"1f1b", "--method inter-only --micro-batches 32 --schedule 1f1b"},
        {"eager, delayed W, overlap",
         "--method inter-only --micro-batches 32 --schedule zero-bubble --overlap transfers"},
        {"the same, links of no time",
         "--method inter-only --micro-batches 32 --schedule zero-bubble --overlap transfers", true}}},
      {"GPT, transfers of a fifth",
       kGpt,
       128,
       0.2,
       {{"1f1b", "--method inter-only --micro-batches 32 --schedule 1f1b"},
        {"chosen schedule and overlap", "--method inter-only --micro-batches 32 --overlap auto"}}},
      {"U-Net with skips, transfers as long as forwards",
       kUnet,
       128,
       1,
       {{"1f1b", "--method inter-only --micro-batches 32 --schedule 1f1b"},
        {"chosen schedule and overlap", "--method inter-only --micro-batches 32 --overlap auto"}}},
      {"GPT of 12 layers, data-parallel",
       kGpt,
       128,
       0,
       {{"no overlap", "--method data-parallel --micro-batches 1"},
        {"overlap", "--method data-parallel --micro-batches 1 --overlap all"}}}};
  return all;
}

struct Targets {
  double of_ideal, lost_without, at_a_fifth, of_unet, of_predicted_gain;
};

Targets read_targets() {
  TomlDocument document = read_toml(ALPA_SOURCE_DIR "/tests/commands/overlap_targets.toml");
  TomlTable root = document.root();
  const Targets targets{root.number("of_ideal"), root.number("lost_without"), root.number("at_a_fifth"),
                        root.number("of_unet"), root.number("of_predicted_gain")};
  document.finish();
  return targets;
}

struct Result {
  double predicted_s = 0, measured_s = 0;
};

class Measuring {
 public:
  Measuring(const Case& of, int rounds, int steps) : case_(of), rounds_(rounds), steps_(steps) {}

  /// [way]
  std::vector<Result> run() {
    model_ =
        runs_.written("model.toml", fmt::format(fmt::runtime(case_.model), ALPA_SOURCE_DIR, case_.batch));
    double tflops = kTflops;
    if (case_.transfer_over_forward > 0) {
      // The time of a forward goes with that of arithmetic, but for what launches and memory take.
      for (int i = 0; i < 3; ++i)
        tflops *= case_.transfer_over_forward / transfer_over_forward(cluster(tflops));
      fmt::print("{}: {:.1f} GFLOP/s a device, a transfer takes {:.2f} of a forward\n", case_.name,
                 1e3 * tflops, transfer_over_forward(cluster(tflops)));
    } else {
      fmt::print("{}: {:.1f} GFLOP/s a device\n", case_.name, 1e3 * tflops);
    }
    const std::string machines = cluster(tflops);
    std::vector<Result> results(case_.ways.size());
    std::vector<std::vector<double>> seconds(results.size());
    for (std::size_t w = 0; w < results.size(); ++w) {
      plan(machines, case_.ways[w].options, plan_file(w));
      results[w].predicted_s = read_plan(plan_file(w)).prediction.step_s;
    }
    for (int round = 0; round < rounds_; ++round)
      for (std::size_t w = 0; w < results.size(); ++w) {
        const Hosts on{kHosts, kHosts, case_.ways[w].is_ideal ? "none" : fmt::format("{}", kMbit)};
        const std::string run = runs_.path(fmt::format("run{}-{}", w, round));
        runs_.run(on, fmt::format("alpa-train {} --data synthetic:256 --threads 1 --steps {} --run-dir {} "
                                  "--device emulated",
                                  plan_file(w), steps_, run));
        seconds[w].push_back(TimedRuns::steps(run + "/emulated.jsonl").median_s);
      }
    for (std::size_t w = 0; w < results.size(); ++w) results[w].measured_s = median(seconds[w]);
    return results;
  }

 private:
  std::string plan_file(std::size_t way) const { return runs_.path(fmt::format("plan{}.h5", way)); }

  std::string cluster(double tflops) const {
    return runs_.written("cluster.toml", emulated_cluster(kHosts, kMbit, tflops, 50, 1000));
  }

  void plan(const std::string& machines, const std::string& options, const std::string& out) const {
    runs_.run(fmt::format("alpa-plan {} --cluster {} {} --force --out {}", model_, machines, options, out));
  }

  /// Of the mean transfer and stage of the first way.
  double transfer_over_forward(const std::string& machines) const {
    plan(machines, case_.ways[0].options, runs_.path("first.h5"));
    const Plan read = read_plan(runs_.path("first.h5"));
    double transfers_s = 0, compute_s = 0;
    for (const TransferPrediction& transfer : read.prediction.transfers) transfers_s += transfer.seconds;
    for (const MeshPrediction& mesh : read.prediction.meshes) compute_s += mesh.compute_s;
    // Each border is crossed there and back; a forward is a third of what a micro-batch takes.
    const double borders = 2.0 * (static_cast<double>(read.meshes.size()) - 1);
    return transfers_s / borders /
           (compute_s / static_cast<double>(read.meshes.size()) / 3 / read.micro_batches);
  }

  const Case& case_;
  int rounds_, steps_;
  TimedRuns runs_;
  std::string model_;
};

void hold(const Case& of, const std::vector<Result>& results, const Targets& targets, HeldTargets& tally) {
  const double without_s = results[0].measured_s, with_s = results[1].measured_s, gain = without_s / with_s;
  if (results.size() > 2) {
    const double ideal_s = results[2].measured_s;
    tally.hold(fmt::format("overlap over what hiding all reaches, at most {}", targets.of_ideal),
               with_s / ideal_s, with_s <= targets.of_ideal * ideal_s);
    tally.hold(fmt::format("without overlap over that, more than {}", targets.lost_without),
               without_s / ideal_s, without_s > targets.lost_without * ideal_s);
  } else if (of.transfer_over_forward == 0) {
    const double predicted = results[0].predicted_s / results[1].predicted_s;
    tally.hold(fmt::format("gain over the predicted one of {:.2f}, at least {}", predicted,
                           targets.of_predicted_gain),
               (gain - 1) / (predicted - 1), gain - 1 >= targets.of_predicted_gain * (predicted - 1));
  } else {
    const double least = of.transfer_over_forward < 1 ? targets.at_a_fifth : targets.of_unet;
    tally.hold(fmt::format("gain, at least {}", least), gain, gain >= least);
  }
}

int run(const std::vector<std::string>& words) {
  bool check = false;
  int rounds = 3, steps = 10;
  std::string only;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 < words.size() && words[i] == "--rounds") rounds = std::stoi(words[i + 1]);
    if (i + 1 < words.size() && words[i] == "--steps") steps = std::stoi(words[i + 1]);
    if (i + 1 < words.size() && words[i] == "--only") only = words[i + 1];
  }
  if (const int status = status_of_hosts(); status != 0) return status;
  fmt::print("{} emulated hosts of one rank, {} Mbit/s, computations emulated\n\n", kHosts, kMbit);
  const Targets targets = read_targets();
  HeldTargets tally;
  for (const Case& of : cases()) {
    if (std::string(of.name).find(only) == std::string::npos) continue;
    const std::vector<Result> results = Measuring(of, rounds, steps).run();
    for (std::size_t w = 0; w < results.size(); ++w)
      fmt::print("  {:<32} predicted {:>8.1f} ms{} measured {:>8.1f} ms\n", of.ways[w].name,
                 1e3 * results[w].predicted_s, of.ways[w].is_ideal ? " (on the links)," : ",",
                 1e3 * results[w].measured_s);
    hold(of, results, targets, tally);
    std::fflush(stdout);
  }
  return tally.finish() || !check ? 0 : 1;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) { return alpa::run_bench("bench_overlap", argc, argv, alpa::run); }
