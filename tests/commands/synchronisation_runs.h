#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/plan/plan_file.h"
#include "tests/commands/synchronisation_formula.h"
#include "tests/commands/timed_runs.h"

// The models of bench_synchronisation, planned and trained.
namespace alpa {

/// How the perceptron is trained.
struct PlannedWay {
  std::string options;  ///< of alpa-plan
  const char* model = "model.toml";
  int servers = 0;  ///< further hosts

  std::string text() const {
    return options + (std::string_view(model) == "model.toml" ? "" : fmt::format(", {}", model)) +
           (servers > 0 ? fmt::format(" --servers {}", servers) : "");
  }
};

/// Ways in turn, over emulated hosts.
class Measuring {
 public:
  Measuring(int samples, double tflops, double latency_us, int rounds, int steps, int clip = 0,
            double mbit = scale.mbit)
      : rounds_(rounds), steps_(steps), batch_(scale.hosts * samples), mbit_(mbit) {
    runs_.written("model.toml",
                  perceptron(static_cast<int>(scale.width), kLayers, scale.hosts * samples, clip));
    runs_.written("bf16.toml",
                  "base = \"model.toml\"\nname = \"bf16\"\n[training]\ngradient_wire = \"bf16\"\n");
    runs_.written("low-rank.toml", fmt::format("base = \"model.toml\"\nname = \"low_rank\"\n[training]\n"
                                               "gradient_compression = \"powersgd\"\ncompression_rank = {}\n",
                                               kRank));
    runs_.written("delayed.toml",
                  "base = \"model.toml\"\nname = \"delayed\"\n[training]\ngradient_delay = 1\n");
    runs_.written("one-layer.toml",
                  fmt::format("base = \"model.toml\"\nname = \"one_layer\"\n[dimensions]\nmodel = {}\n"
                              "layers = 1\n",
                              scale.one_width));
    for (const auto& [name, gradients] : {std::pair{"tables.toml", "dense"}, {"rows.toml", "sparse"}})
      runs_.written(name, fmt::format("base = \"{}/configs/models/ncf.toml\"\nname = \"{}\"\n[dimensions]\n"
                                      "users = {}\nitems = {}\nfactors = {}\nwidth = {}\n[training]\n"
                                      "batch = {}\nembedding_gradients = \"{}\"\n",
                                      ALPA_SOURCE_DIR, gradients, scale.ids, scale.ids, scale.numbers,
                                      scale.numbers, batch_, gradients));
    cluster_ = runs_.written(
        "cluster.toml", emulated_cluster(2 * scale.hosts, mbit, tflops, latency_us, 1e5, "CPU, emulated"));
  }

  Plan planned(const PlannedWay& way) const {
    runs_.run(fmt::format(
        "alpa-plan {} --cluster {} --devices {} --servers {} --micro-batches 1 {} --force --out {}",
        runs_.path(way.model), cluster_, scale.hosts, way.servers, way.options, runs_.path("plan.h5")));
    return read_plan(runs_.path("plan.h5"));
  }

  /// [way] Measured in turn; prints them beside what was predicted.
  std::vector<double> run(const std::vector<PlannedWay>& ways) const {
    std::vector<double> predicted;
    std::vector<std::vector<double>> seconds(ways.size());
    for (std::size_t w = 0; w < ways.size(); ++w) {
      predicted.push_back(planned(ways[w]).prediction.step_s);
      std::filesystem::rename(runs_.path("plan.h5"), plan_file(w));
    }
    for (int round = 0; round < rounds_; ++round)
      for (std::size_t w = 0; w < ways.size(); ++w) {
        const std::string run = runs_.path(fmt::format("run{}-{}", w, round));
        const int hosts = scale.hosts + ways[w].servers;
        runs_.run({hosts, hosts, fmt::format("{}", mbit_)},
                  fmt::format("alpa-train {} --data synthetic:{} --threads 1 --steps {} --run-dir {} "
                              "--device emulated",
                              plan_file(w), std::max(1024, batch_), steps_, run));
        seconds[w].push_back(TimedRuns::steps(run + "/emulated.jsonl").median_s);
      }
    std::vector<double> measured;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      measured.push_back(median(seconds[w]));
      fmt::print("  {:<52} predicted {:>7.1f} ms, measured {:>7.1f} ms\n", ways[w].text(), 1e3 * predicted[w],
                 1e3 * measured[w]);
    }
    return measured;
  }

 private:
  std::string plan_file(std::size_t way) const { return runs_.path(fmt::format("plan{}.h5", way)); }

  int rounds_, steps_, batch_;
  double mbit_;  ///< of links
  TimedRuns runs_;
  std::string cluster_;
};

}  // namespace alpa
