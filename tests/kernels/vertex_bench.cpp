// bench_vertex [--check] [--threads N] [--rounds N] [--row tree-lstm|chains|tree-fc|peers|predictions]
//     [--peer PYTHON]
//
// What models over graphs gain from batching, medians of rounds in turn: Tree-LSTM steps with the vertices of
// a batch computed one by one, sample by sample, or all that are ready together, beside what the products of
// the same rounds take alone, and without what each step of the batching gains; LSTMs over chains beside
// padded sequences; Tree-FC by numbers of leaves; with --peer (a Python with PyTorch, and DyNet where it has
// the wheel dyNET38) the same batch there, on one thread; and predicted steps beside measured ones, on one
// rank and two. Targets stand in vertex_targets.toml; with --check the exit status says whether all are
// reached.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "libalpa/base/toml_document.h"
#include "libalpa/kernels/cpu/host_threads.h"
#include "tests/commands/vertex_predictions.h"
#include "tests/h5/temporary_folder.h"
#include "tests/kernels/vertex_steps.h"
#include "tests/support/held_targets.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

constexpr GraphLimits kTrees{21'702, 5, 2}, kChains{21'702, 5, 1};
constexpr std::int64_t kSamples = 256;

struct Options {
  int threads = 1, rounds = 5;
  std::string row, peer;

  bool wants(const char* name) const { return row.empty() || row == name; }
};

struct Targets {
  std::vector<std::pair<std::int64_t, double>> over_one_by_one;  ///< hidden, and how many times
  double over_products, packing, fixed_over_padded, var_over_padded, over_pytorch, prediction;
};

Targets read_targets() {
  TomlDocument document = read_toml(source_folder() / "tests/kernels/vertex_targets.toml");
  TomlTable root = document.root();
  Targets targets{{},
                  root.number("over_products"),
                  root.number("packing"),
                  root.number("fixed_over_padded"),
                  root.number("var_over_padded"),
                  root.number("over_pytorch"),
                  root.number("prediction")};
  const std::vector<std::int64_t> hidden = root.integers("hidden");
  const std::vector<double> times = root.numbers("over_one_by_one");
  for (std::size_t i = 0; i < hidden.size(); ++i)
    targets.over_one_by_one.emplace_back(hidden[i], times.at(i));
  document.finish();
  return targets;
}

/// Median seconds of each, in turn; the first round takes the pages.
template <class... Each>
std::vector<double> medians_in_turn(int rounds, const Each&... each) {
  std::vector<std::vector<double>> seconds(sizeof...(Each));
  for (int i = 0; i <= rounds; ++i) {
    std::size_t at = 0;
    (
        [&] {
          const double taken = each();
          if (i > 0) seconds[at].push_back(taken);
          ++at;
        }(),
        ...);
  }
  std::vector<double> medians;
  for (const std::vector<double>& of : seconds) medians.push_back(median(of));
  return medians;
}

/// Seconds in which a batch is done vertex by vertex, each forward and backward by itself, with its term of
/// every gradient: of some, and as many times as there are.
double seconds_one_by_one(const std::string& model, std::int64_t hidden, const GraphBatch& like,
                          int threads) {
  constexpr int kVertices = 1000;
  const GraphBatch leaf = GraphBatch::one_vertex(like.limits());
  GraphStep step(model, hidden, leaf, threads);
  step.take(leaf.packed(BatchingPolicy::serial, step.room()));
  double sum = 0;
  for (int i = 0; i < kVertices; ++i) sum += step.seconds();
  return sum / kVertices * static_cast<double>(like.vertices());
}

double seconds_under(GraphStep& step, const GraphBatch& batch, BatchingPolicy policy) {
  step.take(batch.packed(policy, step.room()));
  return step.seconds();
}

/// Trees with a label at every vertex: policies against each other, and rounds against their products.
void tree_lstm_rows(const Options& o, const Targets& targets, HeldTargets& tally) {
  const GraphBatch batch("synthetic-trees", kTrees, kSamples);
  for (const auto& [hidden, least] : targets.over_one_by_one) {
    const auto in_form = [&, hidden = hidden](const RoundsForm& form) {
      return GraphStep("tree-lstm", hidden, batch, o.threads, form);
    };
    GraphStep step = in_form({}), batched = in_form({false, false, false}),
              lazy = in_form({false, true, false}), eager = in_form({true, true, false});
    const auto under = [&](GraphStep& of, BatchingPolicy policy) {
      return [&, policy] { return seconds_under(of, batch, policy); };
    };
    const std::vector<double> s =
        medians_in_turn(o.rounds, under(step, BatchingPolicy::serial),
                        under(step, BatchingPolicy::per_sample), under(step, BatchingPolicy::agenda),
                        under(batched, BatchingPolicy::frontier), under(lazy, BatchingPolicy::frontier),
                        under(eager, BatchingPolicy::frontier), under(step, BatchingPolicy::frontier), [&] {
                          const double start = seconds_now();
                          batch.packed(BatchingPolicy::frontier, step.room());
                          return seconds_now() - start;
                        });
    const double one_by_one = seconds_one_by_one("tree-lstm", hidden, batch, o.threads), frontier = s[6];
    const HostThreads threads(o.threads);
    const std::vector<double> parts = medians_in_turn(
        o.rounds, [&] { return step.seconds_of_products(); }, [&] { return step.seconds_of("rounds"); },
        [&] { return step.seconds_of("rounds_grad"); });
    fmt::print("Tree-LSTM, hidden {}, {} trees of {} vertices: ms a step\n", hidden, batch.samples(),
               batch.vertices());
    fmt::print(
        "  one by one {:.1f}; gradients of weights and products of inputs for all rows: serial {:.1f}, per "
        "sample {:.1f}, agenda {:.1f}, frontier {:.1f}\n  of that rounds {:.1f} and {:.1f}; all products "
        "alone {:.1f}\n",
        1e3 * one_by_one, 1e3 * s[0], 1e3 * s[1], 1e3 * s[2], 1e3 * frontier, 1e3 * parts[1], 1e3 * parts[2],
        1e3 * parts[0]);
    fmt::print(
        "  frontier alone {:.1f}, and gradients of weights once {:.1f}, and products of inputs once {:.1f}, "
        "and "
        "one pass for what works element by element {:.1f}\n",
        1e3 * s[3], 1e3 * s[4], 1e3 * s[5], 1e3 * frontier);
    tally.hold(fmt::format("frontier over one by one at hidden {}, at least {}", hidden, least),
               one_by_one / frontier, one_by_one / frontier >= least);
    tally.hold(fmt::format("step over its products at hidden {}, at most {}", hidden, targets.over_products),
               frontier / parts[0], frontier <= targets.over_products * parts[0]);
    tally.hold(fmt::format("packing over a step at hidden {}, at most {}", hidden, targets.packing),
               s[7] / frontier, s[7] <= targets.packing * frontier);
  }
}

/// LSTMs over sequences: as chains of vertices, and padded.
void chains_rows(const Options& o, const Targets& targets, HeldTargets& tally) {
  constexpr std::int64_t kHidden = 150, kLength = 20;
  const auto row = [&](const char* name, const GraphBatch& batch, double least) {
    GraphStep chains("var-lstm", kHidden, batch, o.threads);
    PaddedStep padded(kHidden, batch, o.threads);
    const std::vector<double> s = medians_in_turn(
        2 * o.rounds, [&] { return seconds_under(chains, batch, BatchingPolicy::frontier); },
        [&] { return padded.seconds(); });
    fmt::print("LSTM, hidden {}, {} sequences of {} steps: chains {:.1f} ms, padded {:.1f} ms\n", kHidden,
               batch.samples(), batch.vertices(), 1e3 * s[0], 1e3 * s[1]);
    tally.hold(fmt::format("padded over chains, {}, at least {}", name, least), s[1] / s[0],
               s[1] >= least * s[0]);
  };
  row("all of one length", GraphBatch::chains(kChains, kSamples, kLength), targets.fixed_over_padded);
  row("of lengths as sentences have", GraphBatch("chains", kChains, kSamples), targets.var_over_padded);
}

void tree_fc_rows(const Options& o) {
  for (const int leaves : {32, 64, 128, 256, 512, 1024}) {
    const GraphBatch batch(fmt::format("complete-trees:{}:20", leaves), kTrees, 20);
    GraphStep step("tree-fc", 100, batch, o.threads);
    const std::vector<double> s = medians_in_turn(
        o.rounds, [&] { return seconds_under(step, batch, BatchingPolicy::per_sample); },
        [&] { return seconds_under(step, batch, BatchingPolicy::frontier); });
    const double one_by_one = seconds_one_by_one("tree-fc", 100, batch, o.threads);
    fmt::print(
        "Tree-FC, 20 trees of {} leaves: one by one {:.1f} ms, per sample {:.1f} ms, frontier {:.1f} ms, "
        "{:.1f} times as fast as one by one\n",
        leaves, 1e3 * one_by_one, 1e3 * s[0], 1e3 * s[1], one_by_one / s[1]);
  }
}

/// What a peer's step takes; nullopt: it cannot be had.
std::optional<double> seconds_of_peer(const std::string& python, const char* peer, const std::string& trees,
                                      std::int64_t hidden) {
  const std::filesystem::path script = source_folder() / "tests/reference/vertex_speed.py";
  std::string line = fmt::format("OMP_NUM_THREADS=1 {} {} {} {} {} 2>/dev/null", python, script.string(),
                                 peer, trees, hidden);
  std::FILE* const out = popen(line.c_str(), "r");
  double seconds = 0;
  const bool read = out && std::fscanf(out, "%lf", &seconds) == 1;
  return out && pclose(out) == 0 && read ? std::optional(seconds) : std::nullopt;
}

void peer_rows(const Options& o, const Targets& targets, HeldTargets& tally) {
  if (o.peer.empty()) {
    fmt::print("no --peer: PyTorch and DyNet are left out\n");
    return;
  }
  const GraphBatch batch("synthetic-trees", kTrees, kSamples);
  const TemporaryFolder folder;
  const std::string trees = (folder.path() / "trees").string();
  {
    std::ofstream file(trees);
    for (const VertexGraph& graph : batch.graphs()) {
      for (std::int32_t v = 0; v < graph.vertices(); ++v) {
        const auto at = static_cast<std::size_t>(v);
        file << fmt::format("{}:{}:{} ", graph.tokens[at], graph.labels[at],
                            fmt::join(graph.children_of(v), ","));
      }
      file << "\n";
    }
  }
  for (const auto& [hidden, least] : targets.over_one_by_one) {
    GraphStep step("tree-lstm", hidden, batch, 1);
    const double own =
        medians_in_turn(o.rounds, [&] { return seconds_under(step, batch, BatchingPolicy::frontier); })[0];
    const std::optional<double> pytorch = seconds_of_peer(o.peer, "pytorch", trees, hidden),
                                dynet = seconds_of_peer(o.peer, "dynet", trees, hidden);
    fmt::print(
        "Tree-LSTM, hidden {}, one thread: {:.1f} ms; PyTorch, vertex by vertex {:.1f} ms; DyNet {}\n",
        hidden, 1e3 * own, 1e3 * pytorch.value_or(NAN),
        dynet ? fmt::format("{:.1f} ms, {:.1f} times as long", 1e3 * *dynet, *dynet / own) : "is not there");
    tally.hold(fmt::format("PyTorch over it at hidden {}, at least {}", hidden, targets.over_pytorch),
               pytorch.value_or(0) / own, pytorch.value_or(0) >= targets.over_pytorch * own);
  }
}

void prediction_rows(const Options& o, const Targets& targets, HeldTargets& tally) {
  std::vector<double> errors;
  bool arenas = true;
  for (const VertexPrediction& each : vertex_predictions(std::max(1, o.rounds / 2))) {
    errors.push_back(std::abs(each.predicted_s / each.measured_s - 1));
    arenas = arenas && each.has_its_arena;
  }
  tally.hold(fmt::format("median error of {} predictions, at most {}", errors.size(), targets.prediction),
             median(errors), median(errors) <= targets.prediction);
  tally.hold("arenas are as planned", arenas, arenas);
}

int run(const std::vector<std::string>& words) {
  Options o;
  bool check = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value = [&] {
      return i + 1 < words.size() ? words[++i] : throw Error(ErrorKind::usage, words[i] + " needs a value");
    };
    if (words[i] == "--check")
      check = true;
    else if (words[i] == "--threads")
      o.threads = std::stoi(value());
    else if (words[i] == "--rounds")
      o.rounds = std::stoi(value());
    else if (words[i] == "--row")
      o.row = value();
    else if (words[i] == "--peer")
      o.peer = value();
    else
      throw Error(ErrorKind::usage, "unknown option " + words[i]);
  }
  const Targets targets = read_targets();
  HeldTargets tally;
  if (o.wants("tree-lstm")) tree_lstm_rows(o, targets, tally);
  if (o.wants("chains")) chains_rows(o, targets, tally);
  if (o.wants("tree-fc")) tree_fc_rows(o);
  if (o.wants("peers")) peer_rows(o, targets, tally);
  if (o.wants("predictions")) prediction_rows(o, targets, tally);
  return tally.finish() || !check ? 0 : 1;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) { return alpa::run_bench("bench_vertex", argc, argv, alpa::run); }
