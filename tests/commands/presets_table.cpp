#include "tests/commands/presets_table.h"

#include <fstream>
#include <limits>
#include <set>

#include "libalpa/plan/plan_file.h"
#include "tests/commands/line_plot.h"

namespace alpa {
namespace {

constexpr double kDoesNotFit = std::numeric_limits<double>::infinity();

/// GPUs as of 2016, one on a node, at so many GB/s (Poseidon, ATC'17, section 5): 11 TFLOP/s of which
/// convolutions reach half.
constexpr const char* kCluster = R"(
name = "titan-x-16"
device = "NVIDIA TITAN X"
kind = "cuda"
nodes = 16
devices_per_node = 1
memory_gib = 11
f32_tflops = 5.5
memory_gb_per_s = 280
launch_us = 6
within_node = {{ latency_us = 10, gb_per_s = 12 }}
between_nodes = {{ latency_us = 30, gb_per_s = {} }}
)";

constexpr const char* kModels[] = {"vgg-16",       "vgg19-22k", "resnet-50", "resnet-101", "densenet-121",
                                   "inception-v3", "googlenet", "ncf",       "lm1b"};
/// Of these every bandwidth is planned for.
constexpr const char* kSweptModels[] = {"vgg-16", "vgg19-22k", "resnet-50", "ncf"};
constexpr double kGbits[] = {2, 5, 10, 20, 40};
constexpr double kGBOfGbit = 0.12;  ///< what is left of a Gbit/s for data
constexpr const char* kPresets[] = {"ddp",
                                    "horovod",
                                    "bytescheduler",
                                    "poseidon",
                                    "parallax",
                                    "zero-1",
                                    "zero-2",
                                    "all-reduce",
                                    "ps",
                                    "ps-balanced",
                                    "partitioned-ps",
                                    "uneven-partitioned-ps",
                                    "partitioned-all-reduce",
                                    "random-axis-all-reduce"};

class PlannedSteps {
 public:
  explicit PlannedSteps(double gbit)
      : cluster_(runs_.written("cluster.toml", fmt::format(fmt::runtime(kCluster), kGBOfGbit * gbit))) {}

  double seconds(const std::string& model, const std::string& options) const {
    const std::string plan = runs_.path("plan.h5");
    std::filesystem::remove(plan);
    try {
      runs_.run(fmt::format("alpa-plan {}/configs/models/{}.toml --cluster {} {} --out {}", ALPA_SOURCE_DIR,
                            model, cluster_, options, plan));
    } catch (const Error& error) {
      if (error.happened().find("no plan fits") == std::string::npos) throw;
      return kDoesNotFit;
    }
    return read_plan(plan).prediction.step_s;
  }

 private:
  TimedRuns runs_;
  std::string cluster_;
};

constexpr const char* kOwnChoice = "--overlap auto --updates auto";

std::string cell(double seconds) {
  return seconds == kDoesNotFit ? std::string("-") : fmt::format("{:.1f}", 1e3 * seconds);
}

}  // namespace

void hold_own_choice_to_presets(double within, HeldTargets& tally) {
  const PlannedSteps steps(10);
  fmt::print("predicted step in ms, 16 nodes of a TITAN X at 10 Gbit/s (-: does not fit)\n  {:<14}", "");
  for (const char* preset : kPresets) fmt::print("{:>15}", preset);
  fmt::print("{:>15}\n", "own choice");
  std::set<std::string> best_presets;
  std::vector<std::pair<std::string, double>> own_to_best;
  for (const char* model : kModels) {
    fmt::print("  {:<14}", model);
    double best_s = kDoesNotFit;
    std::string best;
    for (const char* preset : kPresets) {
      const double seconds = steps.seconds(model, fmt::format("--preset {}", preset));
      if (seconds < best_s) best_s = seconds, best = preset;
      fmt::print("{:>15}", cell(seconds));
    }
    const double own_s = steps.seconds(model, kOwnChoice);
    fmt::print("{:>15}\n", cell(own_s));
    std::fflush(stdout);
    best_presets.insert(best);
    own_to_best.emplace_back(model, own_s / best_s);
  }
  for (const auto& [model, ratio] : own_to_best)
    tally.hold(fmt::format("{}: own choice to the best preset, at most {}", model, within), ratio,
               ratio <= within);
  tally.hold("presets that are the best of some model, at least 2", static_cast<double>(best_presets.size()),
             best_presets.size() >= 2);
}

void sweep_bandwidth(double within, const std::string& plot_file, HeldTargets& tally) {
  fmt::print("predicted step in ms, 16 nodes of a TITAN X (-: does not fit)\n  {:<11} {:>7}", "", "Gbit/s");
  for (const char* preset : kPresets) fmt::print("{:>14}", preset);
  fmt::print("{:>14}  best preset\n", "own choice");
  std::vector<LinePlot> plots;
  std::vector<std::pair<std::string, double>> worst;
  for (const char* model : kSweptModels) {
    LinePlot plot{model, "Gbit/s of each node", "ms a step", {std::begin(kGbits), std::end(kGbits)}, {}};
    for (const char* preset : kPresets) plot.lines.push_back({preset, {}});
    plot.lines.push_back({"own choice", {}});
    worst.emplace_back(model, 0);
    for (const double gbit : kGbits) {
      const PlannedSteps steps(gbit);
      fmt::print("  {:<11} {:>7}", model, gbit);
      double best_s = kDoesNotFit, seconds = 0;
      std::string best;
      for (LinePlot::Line& line : plot.lines) {
        const bool is_own = &line == &plot.lines.back();
        seconds = steps.seconds(model, is_own ? kOwnChoice : "--preset " + line.name);
        if (seconds != kDoesNotFit) line.points.emplace_back(gbit, 1e3 * seconds);
        if (!is_own && seconds < best_s) best_s = seconds, best = line.name;
        fmt::print("{:>14}", cell(seconds));
      }
      fmt::print("  {}\n", best);
      std::fflush(stdout);
      worst.back().second = std::max(worst.back().second, seconds / best_s);
    }
    plots.push_back(std::move(plot));
  }
  for (const auto& [model, ratio] : worst)
    tally.hold(fmt::format("{}: own choice to the best preset at any rate, at most {}", model, within), ratio,
               ratio <= within);
  if (plot_file.empty()) return;
  std::ofstream file(plot_file);
  if (!(file << svg_of(plots) << std::flush))
    throw Error(ErrorKind::run_time, "cannot write '" + plot_file + "'");
}

}  // namespace alpa
