#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/held_targets.h"

// The commands, run and timed by benches.
namespace alpa {

/// Agreeing minus disagreeing pairs of plans, of all that differ by more than that measured (Kendall's tau).
struct PairOrder {
  int pairs = 0, sum = 0;
  template <class Result>
  void add(const std::vector<Result>& results, double apart) {
    for (const Result& a : results)
      for (const Result& b : results) {
        if (a.measured_s * apart >= b.measured_s || a.predicted_s == b.predicted_s) continue;
        ++pairs;
        sum += a.predicted_s < b.predicted_s ? 1 : -1;
      }
  }
  double tau() const { return 1.0 * sum / std::max(1, pairs); }
};

template <class Result>
double error_of(const Result& result) {
  return std::abs(result.predicted_s / result.measured_s - 1);
}

/// Where ranks run.
struct Hosts {
  int ranks = 1;
  int hosts = 0;              ///< emulated ones; 0: this machine
  std::string mbit = "none";  ///< of their links
};

/// Bytes a second of a link of so many Mbit/s, less the headers of TCP/IP.
constexpr double link_bytes_per_s(double mbit) { return mbit / 8 * 1e6 * 1448 / 1514; }

/// A cluster file of emulated hosts of one device each that are joined by such links.
inline std::string emulated_cluster(int hosts, double mbit, double tflops, double latency_us,
                                    double memory_gb_per_s, const char* device = "emulated") {
  return fmt::format(R"(
name = "hosts"
device = "{}"
nodes = {}
devices_per_node = 1
memory_gib = 8
f32_tflops = {}
bf16_tflops = {}
memory_gb_per_s = {}
launch_us = 0
within_node = {{ latency_us = 5, gb_per_s = 3 }}
between_nodes = {{ latency_us = {}, gb_per_s = {} }}
)",
                     device, hosts, tflops, tflops, memory_gb_per_s, latency_us,
                     link_bytes_per_s(mbit) / 1e9);
}

/// A model file of a perceptron of equal layers, of that many features.
inline std::string perceptron(int width, int layers, int batch, int clip = 0) {
  return fmt::format(R"(
base = "{}/configs/models/image-mlp.toml"
name = "perceptron"
[dimensions]
model = {}
layers = {}
[training]
batch = {}
gradient_clip = {}
)",
                     ALPA_SOURCE_DIR, width, layers, batch, clip);
}

/// Runs commands; what they write goes to a folder of its own.
class TimedRuns {
 public:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  std::string written(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  /// A command without ranks.
  void run(const std::string& command) const { launch("", command); }

  void run(const Hosts& on, const std::string& command) const {
    launch(on.hosts == 0
               ? fmt::format("{} -n {} ", MPIEXEC, on.ranks)
               : fmt::format("MPIEXEC='{}' PRELOAD='{}' '{}/emulated_hosts.sh' {} {} {} ", MPIEXEC,
                             KEEP_CONNECTIONS, NETWORK_TESTS, on.mbit, on.hosts, on.ranks / on.hosts),
           command);
  }

  struct Steps {
    double median_s = 0;
    std::int64_t memory_bytes = 0;
  };
  /// Of the metrics that a run has left.
  static Steps steps(const std::filesystem::path& metrics) {
    std::ifstream file(metrics);
    Steps steps;
    std::vector<double> seconds;
    int step = 0;
    for (std::string line; std::getline(file, line);) {
      const nlohmann::json row = nlohmann::json::parse(line);
      if (++step > 2) seconds.push_back(row.at("step_s"));  // the first steps take pages
      steps.memory_bytes = row.at("memory_bytes");
    }
    steps.median_s = median(seconds);
    return steps;
  }

 private:
  void launch(const std::string& launcher, const std::string& command) const {
    const std::string log = path("log");
    const std::string line =
        fmt::format("OMP_NUM_THREADS=1 {}{}/{} > {} 2>&1", launcher, ALPA_BIN, command, log);
    if (std::system(line.c_str()) == 0) return;
    std::ifstream file(log);
    throw Error(ErrorKind::run_time, fmt::format("failed: {}\n{}", command,
                                                 std::string(std::istreambuf_iterator<char>(file), {})));
  }

  TemporaryFolder folder_;
};

/// 0, or 77 where this machine has no emulated hosts: it has said why.
inline int status_of_hosts() {
  const int status = std::system(
      fmt::format("MPIEXEC='{}' '{}/emulated_hosts.sh' 1000 2 1 true", MPIEXEC, NETWORK_TESTS).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace alpa
