#include "tests/commands/presets_table.h"

#include <limits>
#include <set>

#include "libalpa/plan/plan_file.h"

namespace alpa {
namespace {

constexpr double kDoesNotFit = std::numeric_limits<double>::infinity();

/// GPUs as of 2016, one on a node, at 10 Gbit/s (Poseidon, ATC'17, section 5): 11 TFLOP/s of which
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
within_node = { latency_us = 10, gb_per_s = 12 }
between_nodes = { latency_us = 30, gb_per_s = 1.2 }
)";

constexpr const char* kModels[] = {"vgg-16",       "vgg19-22k", "resnet-50", "resnet-101", "densenet-121",
                                   "inception-v3", "googlenet", "ncf",       "lm1b"};
constexpr const char* kPresets[] = {"ddp", "horovod", "bytescheduler", "poseidon", "zero-1", "zero-2"};

class PlannedSteps {
 public:
  PlannedSteps() : cluster_(runs_.written("cluster.toml", kCluster)) {}

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

std::string cell(double seconds) {
  return seconds == kDoesNotFit ? std::string("-") : fmt::format("{:.1f}", 1e3 * seconds);
}

}  // namespace

void hold_own_choice_to_presets(double within, HeldTargets& tally) {
  const PlannedSteps steps;
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
    const double own_s = steps.seconds(model, "--overlap auto --updates auto");
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

}  // namespace alpa
