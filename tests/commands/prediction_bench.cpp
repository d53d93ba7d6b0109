// bench_prediction [MODEL.toml] [rounds] [steps]: how true predicted step times are. Profiles this machine
// with one rank and with two, of one thread each; plans the model in many ways for one and two ranks; trains
// each plan in turn, `rounds` times; prints predicted beside measured, and how well the prediction orders the
// plans.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/plan/plan_file.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

struct Way {
  int ranks = 1;
  std::string options;  ///< of alpa-plan
};

const std::vector<Way> kWays{{1, "--method serial --micro-batches 1"},
                             {1, "--method serial --micro-batches 4"},
                             {1, "--method serial --micro-batches 8"},
                             {1, "--method serial --micro-batches 2 --rematerialize always"},
                             {2, "--method data-parallel --micro-batches 1"},
                             {2, "--method data-parallel --micro-batches 4"},
                             {2, "--method zero-1 --micro-batches 2"},
                             {2, "--method zero-2 --micro-batches 4"},
                             {2, "--method zero-3 --micro-batches 1"},
                             {2, "--method tensor --micro-batches 1"},
                             {2, "--method tensor --micro-batches 4"},
                             {2, "--method sequence --micro-batches 1"},
                             {2, "--method inter-only --micro-batches 2"},
                             {2, "--method inter-only --micro-batches 8"},
                             {2, "--method inter-only --micro-batches 4 --schedule gpipe"},
                             {2, "--method inter-only --micro-batches 4 --rematerialize always"}};

struct Result {
  double predicted_s = 0, measured_s = 0;
  std::int64_t predicted_bytes = 0, measured_bytes = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(std::string model, int rounds, int steps)
      : model_(std::move(model)), rounds_(rounds), steps_(steps) {}

  void run() {
    for (const int ranks : {1, 2}) {
      fmt::print("profiling with {} rank{} ...\n", ranks, ranks == 1 ? "" : "s");
      run_command(ranks, fmt::format("alpa-profile {} --threads 1 --out {}", model_, profile(ranks)));
    }
    for (std::size_t i = 0; i < kWays.size(); ++i)
      run_command(1, fmt::format("alpa-plan {} --profile {} --devices {} {} --out {}", model_,
                                 profile(kWays[i].ranks), kWays[i].ranks, kWays[i].options, plan(i)));
    std::vector<std::vector<double>> seconds(kWays.size());
    std::vector<Result> results(kWays.size());
    for (int round = 0; round < rounds_; ++round)
      for (std::size_t i = 0; i < kWays.size(); ++i) {
        const std::filesystem::path run = folder_.path() / fmt::format("run{}-{}", i, round);
        run_command(kWays[i].ranks,
                    fmt::format("alpa-train {} --data synthetic:256 --threads 1 --steps {} --run-dir {}",
                                plan(i), steps_, run.string()));
        read_metrics(run, seconds[i], results[i]);
      }
    for (std::size_t i = 0; i < kWays.size(); ++i) {
      const Plan read = read_plan(plan(i));
      results[i].predicted_s = read.prediction.step_s;
      for (const MeshPrediction& mesh : read.prediction.meshes)
        results[i].predicted_bytes = std::max(results[i].predicted_bytes, mesh.memory.total);
      results[i].measured_s = median(seconds[i]);
    }
    print(results);
  }

 private:
  std::string profile(int ranks) const {
    return (folder_.path() / fmt::format("profile{}.h5", ranks)).string();
  }
  std::string plan(std::size_t way) const {
    return (folder_.path() / fmt::format("plan{}.h5", way)).string();
  }

  void run_command(int ranks, const std::string& command) const {
    const std::string log = (folder_.path() / "log").string();
    const std::string line =
        fmt::format("OMP_NUM_THREADS=1 {} -n {} {}/{} > {} 2>&1", MPIEXEC, ranks, ALPA_BIN, command, log);
    if (std::system(line.c_str()) == 0) return;
    std::ifstream file(log);
    throw Error(ErrorKind::run_time, fmt::format("failed: {}\n{}", command,
                                                 std::string(std::istreambuf_iterator<char>(file), {})));
  }

  static void read_metrics(const std::filesystem::path& run, std::vector<double>& seconds, Result& result) {
    std::ifstream file(run / "metrics.jsonl");
    int step = 0;
    for (std::string line; std::getline(file, line);) {
      const nlohmann::json metrics = nlohmann::json::parse(line);
      if (++step > 2) seconds.push_back(metrics.at("step_s"));  // the first steps take pages
      result.measured_bytes = metrics.at("memory_bytes");
    }
  }

  static void print(const std::vector<Result>& results) {
    fmt::print("\n{:>5}  {:<55} {:>10} {:>10} {:>7} {:>12} {:>12}\n", "ranks", "plan", "predicted",
               "measured", "ratio", "arena", "allocated");
    std::vector<double> errors;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result& r = results[i];
      errors.push_back(std::abs(r.predicted_s / r.measured_s - 1));
      fmt::print("{:>5}  {:<55} {:>7.1f} ms {:>7.1f} ms {:>7.2f} {:>12} {:>12}\n", kWays[i].ranks,
                 kWays[i].options, 1e3 * r.predicted_s, 1e3 * r.measured_s, r.predicted_s / r.measured_s,
                 r.predicted_bytes, r.measured_bytes);
    }
    fmt::print("\nmedian error {:.1f} %, worst {:.1f} %\n", 100 * median(errors),
               100 * *std::max_element(errors.begin(), errors.end()));
    print_order(results);
  }

  /// Kendall's tau over pairs that differ by more than a tenth: agreeing minus disagreeing, of all.
  static void print_order(const std::vector<Result>& results) {
    int pairs = 0, sum = 0;
    for (const Result& a : results)
      for (const Result& b : results) {
        if (a.measured_s * 1.1 >= b.measured_s) continue;
        ++pairs;
        sum += a.predicted_s < b.predicted_s ? 1 : -1;
      }
    fmt::print("Kendall tau {:.2f} over {} pairs of plans that differ by more than 10 % measured\n",
               1.0 * sum / std::max(1, pairs), pairs);
  }

  std::string model_;
  int rounds_, steps_;
  TemporaryFolder folder_;
};

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) {
  try {
    alpa::Bench(argc > 1 ? argv[1] : ALPA_SOURCE_DIR "/configs/models/gpt-demo.toml",
                argc > 2 ? std::atoi(argv[2]) : 3, argc > 3 ? std::atoi(argv[3]) : 12)
        .run();
    return 0;
  } catch (const alpa::Error& error) {
    fmt::print(stderr, "bench_prediction: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
}
