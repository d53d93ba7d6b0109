#include "tests/commands/prediction_pairs.h"

#include "libalpa/plan/plan_file.h"

namespace alpa {
namespace {

constexpr int kPairHosts = 4;
constexpr double kPairMbit = 1000;

/// So small that its gradients take about a tenth of a second on such links, and as many operations a second
/// that computing takes about as long.
struct SmallModel {
  const char *name, *toml, *data;
  const char* large;  ///< parameters
  double gflops;
};

constexpr SmallModel kSmallModels[] = {{"perceptron", R"(
base = "{}/configs/models/image-mlp.toml"
name = "perceptron"
[dimensions]
model = 512
layers = 8
[training]
batch = 256
gradient_clip = 0
)",
                                        "synthetic:1024", "*.up", 8},
                                       {"gpt", R"(
base = "{}/configs/models/gpt-demo.toml"
name = "small-gpt"
[dimensions]
model = 256
[training]
batch = 8
sequence = 64
)",
                                        "synthetic:256", "*.mlp.up", 12},
                                       {"vgg", R"(
base = "{}/configs/models/vgg-16.toml"
name = "small-vgg"
[dimensions]
height = 32
width = 32
base = 16
inner = 512
[training]
batch = 64
)",
                                        "synthetic:256", "full*.weight", 16}};

/// Of alpa-plan; `way`: of the gradients of large parameters, in a file under which samples are shared out.
struct Entries {
  const char *options, *way = "";
};

constexpr Entries kEntries[] = {{"--method data-parallel --sync each"},
                                {"--method data-parallel --sync one"},
                                {"--method data-parallel --sync each --overlap all"},
                                {"--preset ddp"},
                                {"--preset bytescheduler"},
                                {"--preset poseidon"},
                                {"--method zero-1"},
                                {"--preset zero-1"},
                                {"--preset zero-2"},
                                {"--method zero-3"},
                                {"--method zero-3 --overlap all"},
                                {"--method intra-only", "all-reduce"},
                                {"--method intra-only --overlap all", "zero-1"},
                                {"--method intra-only --overlap all --sync ddp", "factors"}};

struct PairTimes {
  double predicted_s = 0, measured_s = 0;
};

/// One model in all its entries.
class MeasuredPairs {
 public:
  MeasuredPairs(const SmallModel& model, int rounds, int steps)
      : model_(model), rounds_(rounds), steps_(steps) {
    runs_.written("model.toml", fmt::format(fmt::runtime(model.toml), ALPA_SOURCE_DIR));
    cluster_ =
        runs_.written("cluster.toml", emulated_cluster(kPairHosts, kPairMbit, model.gflops / 1e3, 50, 20));
  }

  std::vector<PairTimes> run() const {
    std::vector<PairTimes> pairs;
    for (const Entries& entries : kEntries) pairs.push_back({planned_s(entries, pairs.size()), 0});
    std::vector<std::vector<double>> seconds(pairs.size());
    for (int round = 0; round < rounds_; ++round)
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        const std::string run = runs_.path(fmt::format("run{}-{}", p, round));
        runs_.run({kPairHosts, kPairHosts, fmt::format("{}", kPairMbit)},
                  fmt::format("alpa-train {} --data {} --threads 1 --steps {} --run-dir {} --device emulated",
                              plan_file(p), model_.data, steps_, run));
        seconds[p].push_back(TimedRuns::steps(run + "/emulated.jsonl").median_s);
      }
    for (std::size_t p = 0; p < pairs.size(); ++p) pairs[p].measured_s = median(seconds[p]);
    return pairs;
  }

 private:
  std::string plan_file(std::size_t entries) const { return runs_.path(fmt::format("plan{}.h5", entries)); }

  double planned_s(const Entries& entries, std::size_t number) const {
    std::string options = entries.options;
    if (*entries.way != '\0')
      options += " --no-constraint-prices --constraints " +
                 runs_.written(fmt::format("entries{}.toml", number),
                               fmt::format("most_tensor_parallel = 1\n[[gradient]]\nname = \"{}\"\nway = "
                                           "\"{}\"\n",
                                           model_.large, entries.way));
    runs_.run(fmt::format("alpa-plan {} --cluster {} --micro-batches 1 {} --out {}", runs_.path("model.toml"),
                          cluster_, options, plan_file(number)));
    return read_plan(plan_file(number)).prediction.step_s;
  }

  const SmallModel& model_;
  int rounds_, steps_;
  TimedRuns runs_;
  std::string cluster_;
};

}  // namespace

void hold_predictions(int rounds, int steps, const PredictionTargets& targets, HeldTargets& tally) {
  PairOrder order, order_of_all;
  std::vector<double> errors;
  for (const SmallModel& model : kSmallModels) {
    fmt::print("{}, {:.1f} GFLOP/s a device\n", model.name, model.gflops);
    const std::vector<PairTimes> pairs = MeasuredPairs(model, rounds, steps).run();
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const Entries& entries = kEntries[p];
      const std::string in_file =
          *entries.way == '\0' ? "" : fmt::format(", in a file '{}' by {}", model.large, entries.way);
      fmt::print("  {:<76} predicted {:>7.1f} ms, measured {:>7.1f} ms\n", entries.options + in_file,
                 1e3 * pairs[p].predicted_s, 1e3 * pairs[p].measured_s);
      errors.push_back(error_of(pairs[p]));
    }
    order.add(pairs, 1.1);
    order_of_all.add(pairs, 1);
    std::fflush(stdout);
  }
  fmt::print(
      "  {} pairs of plan and entries, worst error {:.1f} %; Kendall tau over all {} pairs of entries "
      "{:.2f}\n",
      errors.size(), 100 * *std::ranges::max_element(errors), order_of_all.pairs, order_of_all.tau());
  const double error = median(errors);
  tally.hold(fmt::format("median error, at most {}", targets.median_error), error,
             error <= targets.median_error);
  tally.hold(fmt::format("Kendall tau over {} pairs that differ by a tenth, at least {}", order.pairs,
                         targets.kendall_tau),
             order.tau(), order.tau() >= targets.kendall_tau);
}

}  // namespace alpa
