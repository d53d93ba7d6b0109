// bench_vertex [--check] [--threads N] [--rounds N]: training steps of models over graphs, with the vertices
// of a batch computed one by one, sample by sample, or all that are ready together; beside what the products
// of the same rounds take alone.
#include <fmt/core.h>

#include <chrono>
#include <optional>

#include "libalpa/base/toml_document.h"
#include "libalpa/dataset/graph_packing.h"
#include "libalpa/dataset/graph_source.h"
#include "libalpa/kernels/cpu/host_threads.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/model/model.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/vertex_program.h"
#include "tests/support/held_targets.h"
#include "tests/support/interpreter.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Options {
  int threads = 1, rounds = 5;
};

/// One batch of graphs.
class Batch {
 public:
  /// With `most`, the first vertices of each sample alone, without their children.
  Batch(const std::string& data, const GraphLimits& limits, std::int64_t samples, int most = 0)
      : limits_(limits) {
    const std::unique_ptr<GraphSource> source = open_graphs(data, limits);
    for (std::int64_t i = 0; i < samples; ++i) {
      VertexGraph graph;
      source->read(i, most > 0 ? graph : graphs_.emplace_back());
      for (int v = 0; v < most; ++v) {
        if (v == 0) graphs_.emplace_back();
        graphs_.back().add(graph.tokens[static_cast<std::size_t>(v)],
                           graph.labels[static_cast<std::size_t>(v)]);
      }
      vertices_ += graphs_.back().vertices();
    }
  }

  const GraphLimits& limits() const { return limits_; }

  std::int64_t samples() const { return std::ssize(graphs_); }
  std::int64_t vertices() const { return vertices_; }

  struct Packed {
    std::vector<std::int32_t> tokens, labels, structure;
    int rounds = 0;
  };
  Packed packed(BatchingPolicy policy, std::int64_t rows) const {
    Packed packed;
    packed.tokens.resize(static_cast<std::size_t>(rows));
    packed.labels.resize(packed.tokens.size());
    packed.structure.resize(packed.tokens.size() * static_cast<std::size_t>(limits_.children + 1));
    std::vector<const VertexGraph*> all;
    for (const VertexGraph& graph : graphs_) all.push_back(&graph);
    packed.rounds = GraphPacker().pack(all, policy, static_cast<int>(limits_.children),
                                       {packed.tokens, packed.labels, packed.structure});
    return packed;
  }

 private:
  GraphLimits limits_;
  std::vector<VertexGraph> graphs_;
  std::int64_t vertices_ = 0;
};

/// A training step of one of configs/models on that batch, in memory of its own.
class Step {
 public:
  Step(const std::string& model, std::int64_t hidden, const Batch& batch, int threads)
      : rows_(batch.vertices()),
        device_(make_cpu_device(threads)),
        graph_(training_step_graph(definition(model, hidden, batch), batch.samples())),
        interpreter_(*device_, graph_) {
    for (const State& state : graph_.states) {
      const std::int64_t count = element_count(value_of(graph_, state.value).type.shape);
      interpreter_.set(state.value, state.is_parameter ? uniform_values(count, -0.05, 0.05, 1)
                                                       : Values(static_cast<std::size_t>(count), 0.0));
    }
    for (const Input& input : graph_.inputs) {
      if (input.kind == InputKind::loss_scale) interpreter_.set(input.value, {1e-4});
      if (input.kind == InputKind::update_scalars) interpreter_.set(input.value, {1e-6, 0.5, 0.5, 0, 1, 1});
    }
  }

  std::int64_t room() const { return element_count(value_of(graph_, graph_.inputs[0].value).type.shape); }

  void take(const Batch::Packed& packed) {
    const auto set = [&](std::size_t input, const std::vector<std::int32_t>& values) {
      interpreter_.set(graph_.inputs[input].value, Values(values.begin(), values.end()));
    };
    set(0, packed.tokens);
    set(1, packed.labels);
    set(2, packed.structure);
    packed_ = packed;
  }

  /// Forward and backward, without the table of the embedding: what a step does for the vertices.
  double seconds() {
    const double start = seconds_now();
    for (const NodeIndex n : graph_.nodes.indices()) {
      const Node& node = graph_.nodes[n];
      // Products add to the sums of gradients themselves.
      if (node.phase == Phase::update || node.op->looks_up_rows || node.op->adds_up_rows ||
          node.op->sums_micro_batches)
        continue;
      interpreter_.run_node(n, node.op->accumulates && node.phase == Phase::backward, {1, 0, 0});
    }
    interpreter_.synchronize();
    return seconds_now() - start;
  }

  /// Of the nodes of one operator.
  double seconds_of(std::string_view op) {
    double sum = 0;
    for (const NodeIndex n : graph_.nodes.indices()) {
      if (graph_.nodes[n].op->name != op || graph_.nodes[n].phase == Phase::update) continue;
      const double start = seconds_now();
      interpreter_.run_node(n, false, {1, 0, 0});
      interpreter_.synchronize();
      sum += seconds_now() - start;
    }
    return sum;
  }

  /// The products of all rounds and those for all rows, on memory that lies as theirs does.
  double seconds_of_products() {
    double sum = seconds_of("einsum");
    for (const Node& node : graph_.nodes) {
      if (!node.op->runs_rounds) continue;
      const std::vector<TensorType> types = operand_types(graph_, node);
      const VertexProgram program = vertex_program({types, node.attributes});
      std::vector<float> rows(static_cast<std::size_t>(rows_ * 4096), 0.5f), to = rows,
                                                                             weight(1 << 22, 0.25f);
      const double start = seconds_now();
      const std::size_t columns = static_cast<std::size_t>(program.children) + 1;
      std::int64_t begin = 0;
      for (int round = 0; round < packed_.rounds; ++round) {
        const std::int64_t end = packed_.structure[static_cast<std::size_t>(round + 1) * columns - 1];
        for (const auto& step : program.steps)
          if (const auto* const m = std::get_if<MultiplyRows>(&step))
            multiply_on_all_threads({end - begin, m->columns, m->sum},
                                    {{false, m->left.stride}, rows.data() + begin * m->left.stride},
                                    {{m->transposed, m->leading}, weight.data()}, 0.0f,
                                    {to.data() + begin * m->to.stride, m->to.stride});
        begin = end;
      }
      sum += seconds_now() - start;
    }
    return sum;
  }

 private:
  static ModelDefinition definition(const std::string& model, std::int64_t hidden, const Batch& batch) {
    const std::filesystem::path source = source_folder();
    const std::int64_t room = (batch.vertices() + batch.samples() - 1) / batch.samples();
    return parse_model(
        fmt::format(
            "base = \"{}\"\nname = \"bench\"\n[graphs]\nvocabulary = \"vocabulary\"\nclasses = \"classes\"\n"
            "children = \"children\"\nvertices = {}\n[dimensions]\nhidden = {}\n[training]\nbatch = {}\n"
            "group_samples = {}\n",
            (source / "configs/models" / (model + ".toml")).string(), room, hidden, batch.samples(),
            batch.samples()),
        "bench.toml", {source / "share/blocks"});
  }

  std::int64_t rows_;
  std::unique_ptr<Device> device_;
  Graph graph_;
  Interpreter interpreter_;
  Batch::Packed packed_;
};

/// Seconds in which a batch is done vertex by vertex, each forward and backward by itself, with its term of
/// every gradient: of some, and as many times as there are.
double seconds_one_by_one(const std::string& model, std::int64_t hidden, const Batch& like, int threads) {
  constexpr int kVertices = 1000;
  const Batch leaf("chains:1", like.limits(), 1, 1);
  Step step(model, hidden, leaf, threads);
  step.take(leaf.packed(BatchingPolicy::serial, step.room()));
  double sum = 0;
  for (int i = 0; i < kVertices; ++i) sum += step.seconds();
  return sum / kVertices * static_cast<double>(like.vertices());
}

/// Median seconds of a step by each policy, in turn.
std::vector<double> by_policies(Step& step, const Batch& batch, std::span<const BatchingPolicy> policies,
                                int rounds) {
  std::vector<std::vector<double>> seconds(policies.size());
  for (int i = 0; i <= rounds; ++i)
    for (std::size_t p = 0; p < policies.size(); ++p) {
      step.take(batch.packed(policies[p], step.room()));
      const double taken = step.seconds();
      if (i > 0) seconds[p].push_back(taken);  // the first takes the pages
    }
  std::vector<double> medians;
  for (const std::vector<double>& of : seconds) medians.push_back(median(of));
  return medians;
}

/// Trees with a label at every vertex: policies against each other, and rounds against their products.
void tree_lstm_rows(const Options& o, HeldTargets& tally) {
  const Batch batch("synthetic-trees", {21'702, 5, 2}, 256);
  TomlDocument document = read_toml(source_folder() / "tests/kernels/vertex_targets.toml");
  const double most = document.root().number("over_products");
  std::vector<std::pair<std::int64_t, double>> targets;
  for (const TomlValue& hidden : document.root().value("hidden").items())
    targets.emplace_back(hidden.integer(), 0);
  for (std::size_t i = 0; const TomlValue& least : document.root().value("over_one_by_one").items())
    targets.at(i++).second = least.number();
  document.finish();
  for (const auto& [hidden, least] : targets) {
    Step step("tree-lstm", hidden, batch, o.threads);
    constexpr BatchingPolicy policies[] = {BatchingPolicy::serial, BatchingPolicy::per_sample,
                                           BatchingPolicy::agenda, BatchingPolicy::frontier};
    const std::vector<double> s = by_policies(step, batch, policies, o.rounds);
    const double one_by_one = seconds_one_by_one("tree-lstm", hidden, batch, o.threads);
    const HostThreads threads(o.threads);
    std::vector<double> products, rounds, backward;
    for (int i = 0; i < o.rounds; ++i) {
      products.push_back(step.seconds_of_products());
      rounds.push_back(step.seconds_of("rounds"));
      backward.push_back(step.seconds_of("rounds_grad"));
    }
    fmt::print("Tree-LSTM, hidden {}, {} trees of {} vertices: ms a step\n", hidden, batch.samples(),
               batch.vertices());
    fmt::print(
        "  one by one {:.1f}; gradients of weights and products of inputs for all rows: serial {:.1f}, per "
        "sample {:.1f}, "
        "agenda {:.1f}, frontier {:.1f}\n  of that rounds {:.1f} and {:.1f}; all products alone {:.1f}\n",
        1e3 * one_by_one, 1e3 * s[0], 1e3 * s[1], 1e3 * s[2], 1e3 * s[3], 1e3 * median(rounds),
        1e3 * median(backward), 1e3 * median(products));
    tally.hold(fmt::format("frontier over one by one at hidden {}, at least {}", hidden, least),
               one_by_one / s[3], one_by_one / s[3] >= least);
    tally.hold(fmt::format("step over its products at hidden {}, at most {}", hidden, most),
               s[3] / median(products), s[3] <= most * median(products));
  }
}

int run(const std::vector<std::string>& words) {
  Options options;
  bool check = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 < words.size() && words[i] == "--threads") options.threads = std::stoi(words[i + 1]);
    if (i + 1 < words.size() && words[i] == "--rounds") options.rounds = std::stoi(words[i + 1]);
  }
  HeldTargets tally;
  tree_lstm_rows(options, tally);
  return tally.finish() || !check ? 0 : 1;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) { return alpa::run_bench("bench_vertex", argc, argv, alpa::run); }
