#include "tests/kernels/vertex_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "libalpa/dataset/graph_packing.h"
#include "libalpa/kernels/cpu/host_threads.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/vertex_program.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

ModelDefinition on_batch(const std::string& model, std::int64_t hidden, const GraphBatch& batch,
                         const RoundsForm& form) {
  const std::filesystem::path source = source_folder();
  const std::int64_t room = (batch.vertices() + batch.samples() - 1) / batch.samples();
  return parse_model(
      fmt::format(
          "base = \"{}\"\nname = \"bench\"\n[graphs]\nvocabulary = \"vocabulary\"\nclasses = \"classes\"\n"
          "children = \"children\"\nvertices = {}\neager = {}\nlazy = {}\nfused = {}\n[dimensions]\nhidden = "
          "{}\n[training]\nbatch = {}\n"
          "group_samples = {}\n",
          (source / "configs/models" / (model + ".toml")).string(), room, form.eager, form.lazy, form.fused,
          hidden, batch.samples(), batch.samples()),
      "bench.toml", {source / "share/blocks"});
}

std::int64_t longest(const GraphBatch& batch) {
  std::int64_t most = 0;
  for (const VertexGraph& graph : batch.graphs()) most = std::max<std::int64_t>(most, graph.vertices());
  return most;
}

ModelDefinition padded_lstm(std::int64_t hidden, const GraphBatch& batch) {
  return parse_model(
      fmt::format(R"(
name = "padded"
[dimensions]
vocabulary = {}
embedding = 300
hidden = {}
classes = {}
positions = {}
[input.words]
shape = ["positions"]
below = "vocabulary"
[input.labels]
shape = ["positions"]
below = "classes"
[input.lengths]
shape = []
below = "positions + 1"
[training]
batch = {}
gradient_clip = 5.0
[[layer]]
block = "token_embedding"
name = "embedding"
of = "words"
as = "x"
model = "embedding"
sequence = "positions"
[[layer]]
block = "lstm"
of = ["x", "lengths"]
as = "x"
in = "embedding"
[[layer]]
block = "sequence_head"
of = ["x", "labels", "lengths"]
as = "loss"
in = "hidden"
)",
                  batch.limits().vocabulary, hidden, batch.limits().classes, longest(batch), batch.samples()),
      "padded.toml", {source_folder() / "share/blocks"});
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

GraphBatch::GraphBatch(const std::string& data, const GraphLimits& limits, std::int64_t samples)
    : limits_(limits), graphs_(static_cast<std::size_t>(samples)) {
  const std::unique_ptr<GraphSource> source = open_graphs(data, limits);
  for (std::int64_t i = 0; i < samples; ++i) source->read(i, graphs_[static_cast<std::size_t>(i)]);
}

GraphBatch GraphBatch::one_vertex(const GraphLimits& limits) { return chains(limits, 1, 1); }

GraphBatch GraphBatch::chains(const GraphLimits& limits, std::int64_t samples, std::int64_t length) {
  GraphBatch batch(limits);
  for (std::int64_t i = 0; i < samples; ++i) {
    VertexGraph& graph = batch.graphs_.emplace_back();
    for (std::int32_t v = 0; v < length; ++v) {
      const std::int32_t before = v - 1;
      graph.add(static_cast<std::int32_t>((i * length + v) % limits.vocabulary),
                static_cast<std::int32_t>(v % limits.classes), std::span(&before, v > 0 ? 1u : 0u));
    }
  }
  return batch;
}

std::int64_t GraphBatch::vertices() const {
  std::int64_t sum = 0;
  for (const VertexGraph& graph : graphs_) sum += graph.vertices();
  return sum;
}

GraphBatch::Packed GraphBatch::packed(BatchingPolicy policy, std::int64_t rows) const {
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

TimedStep::TimedStep(const ModelDefinition& model, int threads)
    : device_(make_cpu_device(threads)),
      graph_(training_step_graph(model, model.training.batch)),
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

void TimedStep::set_input(const std::string& name, std::span<const std::int32_t> values) {
  for (const Input& input : graph_.inputs)
    if (value_of(graph_, input.value).name == name)
      interpreter_.set(input.value, Values(values.begin(), values.end()));
}

void TimedStep::look_up() {
  for (const NodeIndex n : graph_.nodes.indices())
    if (graph_.nodes[n].op->looks_up_rows) interpreter_.run_node(n, false, {1, 0, 0});
  interpreter_.synchronize();
}

double TimedStep::seconds() {
  const double start = seconds_now();
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = graph_.nodes[n];
    if (node.phase == Phase::update || node.op->looks_up_rows || node.op->adds_up_rows) continue;
    // Products add to the sums of gradients themselves.
    if (node.op->sums_micro_batches &&
        node_of(graph_, value_of(graph_, node.operands[0]).producer).op->accumulates)
      continue;
    interpreter_.run_node(n, node.op->accumulates && node.phase == Phase::backward, {1, 0, 0});
  }
  interpreter_.synchronize();
  return seconds_now() - start;
}

double TimedStep::seconds_of(std::string_view op) {
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

GraphStep::GraphStep(const std::string& model, std::int64_t hidden, const GraphBatch& batch, int threads,
                     const RoundsForm& form)
    : TimedStep(on_batch(model, hidden, batch, form), threads), rows_(batch.vertices()) {}

std::int64_t GraphStep::room() const {
  return element_count(value_of(graph(), graph().inputs[0].value).type.shape);
}

void GraphStep::take(const GraphBatch::Packed& packed) {
  set_input("tokens", packed.tokens);
  set_input("labels", packed.labels);
  set_input("structure", packed.structure);
  look_up();
  packed_ = packed;
}

std::vector<std::int64_t> GraphStep::round_ends() const {
  const std::size_t columns = packed_.structure.size() / packed_.tokens.size();
  std::vector<std::int64_t> ends;
  for (int round = 0; round < packed_.rounds; ++round)
    ends.push_back(packed_.structure[static_cast<std::size_t>(round + 1) * columns - 1]);
  return ends;
}

double GraphStep::seconds_of_products() {
  double sum = seconds_of("einsum");
  for (const Node& node : graph().nodes) {
    if (!node.op->runs_rounds) continue;
    const std::vector<TensorType> types = operand_types(graph(), node);
    const VertexProgram program = vertex_program({types, node.attributes});
    std::vector<float> rows(static_cast<std::size_t>(rows_ * 4096), 0.5f), to = rows, weight(1 << 22, 0.25f);
    const double start = seconds_now();
    std::int64_t begin = 0;
    for (const std::int64_t end : round_ends()) {
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

PaddedStep::PaddedStep(std::int64_t hidden, const GraphBatch& batch, int threads)
    : TimedStep(padded_lstm(hidden, batch), threads) {
  const auto positions = static_cast<std::size_t>(longest(batch));
  std::vector<std::int32_t> words, labels, lengths;
  for (const VertexGraph& graph : batch.graphs()) {
    lengths.push_back(graph.vertices());
    words.insert(words.end(), graph.tokens.begin(), graph.tokens.end());
    labels.insert(labels.end(), graph.labels.begin(), graph.labels.end());
    words.resize(lengths.size() * positions, 0);
    labels.resize(words.size(), 0);
  }
  for (std::int32_t& label : labels) label = std::max(label, 0);
  set_input("words", words);
  set_input("labels", labels);
  set_input("lengths", lengths);
  look_up();
}

}  // namespace alpa
