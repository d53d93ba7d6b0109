// What tuning gains over the best preset, and what the search is worth.
//
//   bench_tuning [--check] [--row search|headroom|live] [--model NAME] [--trials N] [--rounds N] [--steps N]
//
// headroom: by the simulator alone, all choices that are the same for all parameters of a kind. live:
// alpa-train tune on four emulated hosts of one rank at 1 Gbit/s, computations emulated; then the tuned plan
// and the best preset train in turn, and medians of rounds are compared. Targets stand in
// tuning_targets.toml; with --check the exit status says whether all are reached.
#include <fmt/core.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/toml_document.h"
#include "libalpa/model/model.h"
#include "libalpa/plan/plan_file.h"
#include "libalpa/planner/predict.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/text.h"
#include "libalpa/planner/tuning/plan_choices.h"
#include "libalpa/planner/tuning/tuning_file.h"
#include "tests/commands/timed_runs.h"

namespace alpa {
namespace {

constexpr int kHosts = 4;
constexpr double kMbit = 1000;

/// What is tuned, and what its devices are like.
struct Case {
  std::string_view name, base, changes;
  int samples;    ///< a device
  double tflops;  ///< of a device
  const char* data;
};

// Devices on which computation takes about as long as the sums of all gradients.
constexpr Case kCases[] = {
    {"perceptron", "image-mlp", "model = 1024\nlayers = 8\n", 64, 0.012, "synthetic:1024"},
    {"few samples", "image-mlp", "model = 1024\nlayers = 8\n", 24, 0.006, "synthetic:1024"},
    {"wide", "image-mlp", "model = 2048\nlayers = 3\n", 96, 0.02, "synthetic:1024"},
};

struct Options {
  int trials = 50, rounds = 3, steps = 12;
  double least_gain = 0, most_loss = 0;
  std::string model;
};

class TunedCase {
 public:
  explicit TunedCase(const Case& of) : of_(of) {
    const std::string model = runs_.written(
        "model.toml", fmt::format("base = \"{}/configs/models/{}.toml\"\nname = \"tuned\"\n[dimensions]\n{}"
                                  "[training]\nbatch = {}\n",
                                  ALPA_SOURCE_DIR, of.base, of.changes, kHosts * of.samples));
    const std::string cluster =
        runs_.written("cluster.toml", emulated_cluster(kHosts, kMbit, of.tflops, 50, 1e2));
    runs_.run(
        fmt::format("alpa-plan {} --cluster {} --micro-batches 1 --method data-parallel --sync each --out {}",
                    model, cluster, plan_file()));
    plan_ = read_plan(plan_file());
    model_ = parse_model(plan_.model_toml, "model of the plan");
    graph_ = training_step_graph(model_, plan_.micro_batch_samples);
    costs_.emplace(plan_.cluster);
    choices_.emplace(plan_, graph_, *costs_);
  }

  const PlanChoices& choices() const { return *choices_; }

  /// Trials in the file of the tuned plan.
  TuningRecord tuned(int trials) const {
    launch(
        fmt::format("alpa-train tune {} --data {} --threads 1 --trials {} --timed-steps 8 --device emulated "
                    "--out {}",
                    plan_file(), of_.data, trials, runs_.path("tuned.h5")));
    return read_tuning(runs_.path("tuned.h5"));
  }

  void write(const TuningChoice& choice, const std::string& name) const {
    Plan plan = choices_->plan_of(choice);
    predict(plan, graph_, *costs_);
    plan.program_fingerprint = program_fingerprint(lower(graph_, plan), graph_);
    write_plan(runs_.path(name), plan, graph_, {});
  }

  /// [plan] Medians of rounds in which they train in turn.
  std::vector<double> steps_s(const std::vector<std::string>& plans, const Options& o) const {
    std::vector<std::vector<double>> seconds(plans.size());
    for (int round = 0; round < o.rounds; ++round)
      for (std::size_t p = 0; p < plans.size(); ++p) {
        const std::string run = runs_.path(fmt::format("run{}-{}", p, round));
        launch(fmt::format("alpa-train {} --data {} --threads 1 --steps {} --run-dir {} --device emulated",
                           runs_.path(plans[p]), of_.data, o.steps, run));
        seconds[p].push_back(TimedRuns::steps(run + "/emulated.jsonl").median_s);
      }
    std::vector<double> medians;
    for (const std::vector<double>& of : seconds) medians.push_back(median(of));
    return medians;
  }

 private:
  std::string plan_file() const { return runs_.path("plan.h5"); }
  void launch(const std::string& command) const {
    runs_.run({kHosts, kHosts, fmt::format("{}", kMbit)}, command);
  }

  const Case& of_;
  TimedRuns runs_;
  Plan plan_;
  ModelDefinition model_;
  Graph graph_;
  std::optional<CostModel> costs_;
  std::optional<PlanChoices> choices_;
};

/// All choices that are the same for all parameters of a kind, through the simulator alone.
double headroom(const PlanChoices& choices) {
  const TuningSpace whole = choices.space();
  double preset_s = infinity;
  for (const NamedChoice& preset : whole.presets) {
    const double s = whole.assess(preset.choice).predicted_s;
    fmt::print("  {:<16} {:>8.1f} ms\n", preset.name, 1e3 * s);
    preset_s = std::min(preset_s, s);
  }
  std::map<std::string, std::vector<std::size_t>> kinds;
  for (std::size_t g = 0; g < whole.genes.size(); ++g) kinds[whole.genes[g].kind].push_back(g);
  TuningSpace of_kinds{{}, {}, {}, {}};
  std::vector<std::vector<std::size_t>> members;
  for (auto& [kind, of] : kinds) {
    of_kinds.genes.push_back({kind, whole.genes[of.front()].words});
    members.push_back(std::move(of));
  }
  TuningChoice choice(members.size(), 0), best;
  double least_s = infinity;
  int count = 0;
  for (bool more = true; more; ++count) {
    TuningChoice widened(whole.genes.size());
    for (std::size_t k = 0; k < members.size(); ++k)
      for (const std::size_t g : members[k]) widened[g] = choice[k];
    const double s = whole.assess(widened).predicted_s;
    if (s < least_s) least_s = s, best = choice;
    more = false;
    for (std::size_t k = 0; k < choice.size() && !more; ++k) {
      more = ++choice[k] < static_cast<int>(of_kinds.genes[k].words.size());
      if (!more) choice[k] = 0;
    }
  }
  fmt::print("  best of {} choices by kind {:.1f} ms, {:.3f}x:", count, 1e3 * least_s, preset_s / least_s);
  for (std::size_t k = 0; k < best.size(); ++k)
    fmt::print(" {} {}{}", of_kinds.genes[k].name, of_kinds.genes[k].words[best[k]],
               k + 1 < best.size() ? "," : "\n");
  return preset_s / least_s;
}

void headroom_row(const Options& o, HeldTargets&) {
  for (const Case& each : kCases) {
    if (!o.model.empty() && o.model != each.name) continue;
    fmt::print("headroom of {}, {} samples a device\n", each.name, each.samples);
    headroom(TunedCase(each).choices());
    std::fflush(stdout);
  }
}

void live_row(const Options& o, HeldTargets& tally) {
  double most = 0;
  for (const Case& each : kCases) {
    if (!o.model.empty() && o.model != each.name) continue;
    fmt::print("{}, {} samples a device\n", each.name, each.samples);
    const TunedCase of(each);
    const TuningRecord record = of.tuned(o.trials);
    const int preset = fastest_trial(record.trials, [](const TuningTrial& trial) {
      return trial.origin != kFoundBySearch && trial.origin != kTransferred;
    });
    const int best = fastest_trial(record.trials);
    of.write(record.trials[preset].choice, "preset.h5");
    const std::vector<double> s = of.steps_s({"preset.h5", "tuned.h5"}, o);
    fmt::print("  {} trials: best preset {} {:.1f} ms, tuned {:.1f} ms (trial {})\n", record.trials.size(),
               record.trials[preset].origin, 1e3 * record.trials[preset].measured_s,
               1e3 * record.trials[best].measured_s, best + 1);
    fmt::print("  held-out pairs {}: simulator {:.3f}, residual {:.3f}, linear {:.3f}; residual {}\n",
               record.accuracy.pairs, record.accuracy.simulator, record.accuracy.residual,
               record.accuracy.linear, record.model.weights.empty() ? "not used" : "used");
    fmt::print("  trained in turn: preset {:.1f} ms, tuned {:.1f} ms\n", 1e3 * s[0], 1e3 * s[1]);
    tally.hold(fmt::format("gain over the best preset, at least 1 / {}", o.most_loss), s[0] / s[1],
               s[0] / s[1] >= 1 / o.most_loss);
    most = std::max(most, s[0] / s[1]);
    std::fflush(stdout);
  }
  tally.hold(fmt::format("greatest of these gains, at least {}", o.least_gain), most, most >= o.least_gain);
}

struct Row {
  std::string_view name;
  void (*run)(const Options&, HeldTargets&);
};
constexpr Row kRows[] = {{"headroom", headroom_row}, {"live", live_row}};

int run(const std::vector<std::string>& words) {
  bool check = false;
  std::string row;
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 == words.size()) continue;
    if (words[i] == "--row") row = words[i + 1];
    if (words[i] == "--model") options.model = words[i + 1];
    if (words[i] == "--trials") options.trials = std::stoi(words[i + 1]);
    if (words[i] == "--rounds") options.rounds = std::stoi(words[i + 1]);
    if (words[i] == "--steps") options.steps = std::stoi(words[i + 1]);
  }
  if (!row.empty() && std::ranges::find(kRows, row, &Row::name) == std::end(kRows))
    throw Error(ErrorKind::usage, "no row is called " + row, "headroom or live");
  if (const int status = status_of_hosts(); status != 0) return status;
  TomlDocument document = read_toml(ALPA_SOURCE_DIR "/tests/commands/tuning_targets.toml");
  options.least_gain = document.root().number("least_gain");
  options.most_loss = document.root().number("most_loss");
  document.finish();
  fmt::print("{} emulated hosts of one rank, {} Mbit/s, computations emulated\n\n", kHosts, kMbit);
  HeldTargets tally;
  for (const Row& each : kRows)
    if (row.empty() || row == each.name) each.run(options, tally);
  return tally.finish() || !check ? 0 : 1;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) { return alpa::run_bench("bench_tuning", argc, argv, alpa::run); }
