// What tuning gains over the best preset, and what the search is worth.
//
//   bench_tuning [--check] [--row search|headroom|live] [--model NAME] [--trials N] [--rounds N] [--steps N]
//
// search: the search on a black box, the simulator with costs that it does not know. headroom: by the
// simulator alone, all choices that are the same for all parameters of a kind, of the first model or that
// one. live: alpa-train tune on four emulated hosts of one rank at 1 Gbit/s, computations emulated; then the
// tuned plan and the best preset train in turn, and medians of rounds are compared. Targets stand in
// tuning_targets.toml; with --check the exit status says whether all are reached. A row takes under 12
// minutes.
#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/model/model.h"
#include "libalpa/plan/plan_file.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/tuning/plan_choices.h"
#include "libalpa/planner/tuning/tuning_file.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/text.h"
#include "tests/commands/timed_runs.h"
#include "tests/planner/tuning/hidden_costs.h"

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
    {"wide", "image-mlp", "model = 1536\nlayers = 3\n", 96, 0.02, "synthetic:1024"},
};

struct Options {
  std::optional<int> trials;  ///< unsaid: of each row its own
  int rounds = 3, steps = 12;
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
        fmt::format("alpa-train tune {} --data {} --threads 1 --trials {} --timed-steps 6 --device emulated "
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
void print_headroom(const PlanChoices& choices) {
  const TuningSpace whole = choices.space();
  double preset_s = infinity;
  for (const NamedChoice& preset : whole.presets) {
    const double s = whole.assess(preset.choice).predicted_s;
    fmt::print("  {:<16} {:>8.1f} ms\n", preset.name, 1e3 * s);
    preset_s = std::min(preset_s, s);
  }
  std::map<std::string, std::vector<std::size_t>> kinds;
  for (std::size_t g = 0; g < whole.genes.size(); ++g) kinds[whole.genes[g].kind].push_back(g);
  std::vector<TuningChoice> all{TuningChoice(whole.genes.size(), 0)};
  for (const auto& [kind, members] : kinds) {
    std::vector<TuningChoice> more;
    for (const TuningChoice& choice : all)
      for (int word = 0; word < static_cast<int>(whole.genes[members.front()].words.size()); ++word) {
        more.push_back(choice);
        for (const std::size_t g : members) more.back()[g] = word;
      }
    all = std::move(more);
  }
  std::vector<double> seconds(all.size());
  run_tasks(static_cast<int>(all.size()), thread_count(0),
            [&](int i) { seconds[i] = whole.assess(all[i]).predicted_s; });
  const auto best = std::ranges::min_element(seconds) - seconds.begin();
  fmt::print("  best of {} choices by kind {:.1f} ms, {:.3f}x over the best preset:\n   ", all.size(),
             1e3 * seconds[best], preset_s / seconds[best]);
  for (const auto& [kind, members] : kinds)
    fmt::print(" {} {};", kind, whole.genes[members.front()].words[all[best][members.front()]]);
  fmt::print("\n");
}

void headroom_row(const Options& o, HeldTargets&) {
  for (const Case& each : kCases) {
    if (o.model.empty() ? &each != kCases : o.model != each.name) continue;
    fmt::print("headroom of {}, {} samples a device\n", each.name, each.samples);
    print_headroom(TunedCase(each).choices());
    std::fflush(stdout);
  }
}

void live_row(const Options& o, HeldTargets& tally) {
  double most = 0;
  for (const Case& each : kCases) {
    if (!o.model.empty() && o.model != each.name) continue;
    fmt::print("{}, {} samples a device\n", each.name, each.samples);
    const TunedCase of(each);
    const TuningRecord record = of.tuned(o.trials.value_or(30));  // whose presets are a third
    const int preset = fastest_trial(record.trials, &TuningTrial::is_preset);
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

/// The search against costs that it does not know, of some seeds: the simulator's times factors of e^N(0,
/// 0.7).
void search_row(const Options& o, HeldTargets& tally) {
  constexpr int kSeeds = 6;  // each takes a minute and a half of two cores
  const int trials = o.trials.value_or(50);
  Cluster cluster = testing_models::small_cluster(2);
  cluster.nodes = 2;
  const Tunable gpt([](std::int64_t samples) { return testing_models::tiny_gpt(samples, 1); }, 8, cluster);
  const TuningSpace space = gpt.choices.space();
  fmt::print("hidden costs of {} seeds, {:.1e} choices, {} trials\n", kSeeds, space.size(), trials);
  double least = infinity, warm = 0;  // gain over the best preset; logarithm of what warm takes more
  std::map<TuningMethod, double> gains;
  RankingAccuracy mean;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const HiddenCosts hidden(gpt.choices, gpt.graph, gpt.cluster, seed), like(hidden, seed);
    const auto measured = [&](const TuningChoice& choice) { return hidden.measured_s(choice); };
    const auto settings = [&](TuningMethod method) {
      TuningSettings of;
      of.method = method;
      of.explored = 80;
      of.seed = static_cast<std::int64_t>(seed);
      return of;
    };
    const auto searched = [&](TuningMethod method) {
      TuningSearch search(space, settings(method));
      run_trials(search, trials, measured);
      const auto s = [&](int trial) { return search.trials()[trial].measured_s; };
      const double gain = s(search.fastest_preset()) / s(search.fastest());
      gains[method] += std::log(gain) / kSeeds;
      least = std::min(least, gain);
      return search;
    };
    searched(TuningMethod::random), searched(TuningMethod::descent);
    const TuningSearch search = searched(TuningMethod::autosync);
    const RankingAccuracy accuracy = search.accuracy();
    mean.simulator += accuracy.simulator / kSeeds;
    mean.residual += accuracy.residual / kSeeds;
    mean.linear += accuracy.linear / kSeeds;
    TuningSearch elsewhere(space, settings(TuningMethod::autosync));
    run_trials(elsewhere, trials, [&](const TuningChoice& choice) { return like.measured_s(choice); });
    TuningSearch again(space, settings(TuningMethod::autosync),
                       earlier_trials("elsewhere", record_of(elsewhere, ""), space.features));
    run_trials(again, trials / 4, measured);
    warm +=
        std::log(again.trials()[again.fastest()].measured_s / search.trials()[search.fastest()].measured_s) /
        kSeeds;
  }
  for (const auto& [method, gain] : gains)
    fmt::print("  {:<10} {:.3f}x over the best preset in the mean\n",
               method == TuningMethod::autosync  ? "autosync"
               : method == TuningMethod::descent ? "dp"
                                                 : "random",
               std::exp(gain));
  fmt::print("  held-out pairs in the right order: simulator {:.3f}, residual {:.3f}, linear {:.3f}\n",
             mean.simulator, mean.residual, mean.linear);
  tally.hold("least gain over the best preset of any seed and method, at least 1", least, least >= 1);
  tally.hold(
      fmt::format("warm in {} trials, of what {} trials came to cold, at most 1.01", trials / 4, trials),
      std::exp(warm), std::exp(warm) <= 1.01);
}

struct Row {
  std::string_view name;
  void (*run)(const Options&, HeldTargets&);
};
constexpr Row kRows[] = {{"search", search_row}, {"headroom", headroom_row}, {"live", live_row}};

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
    throw Error(ErrorKind::usage, "no row is called " + row, "search, headroom or live");
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
