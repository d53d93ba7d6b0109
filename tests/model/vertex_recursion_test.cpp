// The Tree-LSTM of the suite, packed in every way, against what it says of one vertex: a recursion over each
// sample in f64 that knows of no rows and no rounds, and counts taken from the graphs.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libalpa/dataset/graph_packing.h"
#include "libalpa/ops/vertex_program.h"
#include "tests/dataset/random_graphs.h"
#include "tests/model/models.h"
#include "tests/model/naive_tree_lstm.h"
#include "tests/support/interpreter.h"

namespace alpa {
namespace {

constexpr int kSamples = 6, kGroup = 2, kRoom = 9, kChildren = 3, kTokens = kSamples * kRoom;

/// What a vertex shows is weighed with numbers of its own: the sum of all is the loss.
ModelDefinition weighed_tree_lstm(const RoundsForm& form = {}) {
  return parse_model(fmt::format(R"(name = "weighed"
[graphs]
vocabulary = {}
classes = {}
children = {}
vertices = {}
eager = {}
lazy = {}
fused = {}
[dimensions]
hidden = {}
children = {}
[training]
batch = {}
group_samples = {}
[block.weighed]
parameters = ["hidden"]
inputs = ["y", "labels"]
outputs = ["loss"]
steps = [
  {{op = "embedding", of = ["numbers", "labels"], as = "weights"}},
  {{op = "mul", of = ["y", "weights"], as = "products"}},
  {{op = "reduce_sum", of = "products", as = "loss"}},
]
[block.weighed.weights]
numbers = {{shape = [{}, "hidden"], init = {{normal = 1}}}}
[[layer]]
block = "vertex_embedding"
of = "tokens"
as = "x"
vocabulary = {}
embedding = {}
[[layer]]
block = "tree_lstm"
of = "x"
as = "y"
in = {}
[[layer]]
block = "weighed"
of = ["y", "labels"]
as = "loss"
)",
                                 kTokens, kTokens, kChildren, kRoom, form.eager, form.lazy, form.fused,
                                 kHidden, kChildren, kSamples, kGroup, kTokens, kTokens, kWide, kWide),
                     "weighed.toml", {std::filesystem::path(ALPA_SOURCE_DIR) / "share" / "blocks"});
}

/// Graphs whose vertices, some with several parents, have each a token of its own, and a label of that
/// number: gradients of the rows of tables are those of vertices.
std::vector<VertexGraph> graphs_of_own_tokens() {
  std::mt19937 random(5);
  std::vector<VertexGraph> graphs;
  std::int32_t token = 0;
  for (int i = 0; i < kSamples; ++i) {
    graphs.push_back(random_graph(random, kRoom, kChildren));
    for (std::int32_t& each : graphs.back().tokens) each = token++;
    graphs.back().labels = graphs.back().tokens;
  }
  return graphs;
}

Parameters drawn_parameters() {
  Parameters drawn;
  const auto draw = [&](const char* name, std::size_t count) {
    drawn[name] =
        rounded(uniform_values(static_cast<std::int64_t>(count), -1, 1, drawn.size() + 1), DType::f32);
  };
  draw("vertex_embedding.table", kTokens * kWide);
  draw("tree_lstm.input", kWide * 4 * kHidden);
  draw("tree_lstm.bias", 4 * kHidden);
  draw("tree_lstm.recurrent", kHidden * 3 * kHidden);
  draw("tree_lstm.forget", kHidden * kHidden);
  draw("weighed.numbers", kTokens * kHidden);
  return drawn;
}

double naive_loss(const Parameters& parameters) {
  double sum = 0;
  for (const VertexGraph& graph : graphs_of_own_tokens()) sum += NaiveTreeLstm(parameters, graph).loss();
  return sum;
}

Parameters naive_gradients(const Parameters& parameters) {
  Parameters gradients = parameters;
  for (auto& [name, values] : gradients) std::ranges::fill(values, 0.0);
  for (const VertexGraph& graph : graphs_of_own_tokens())
    NaiveTreeLstm(parameters, graph).add_gradients_to(gradients);
  return gradients;
}

double greatest_of(const Values& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// A loss of tens is known to 1e-14 or so, so that a step of 1e-5 leaves 1e-9 of that, and h^2 = 1e-10 of
// derivatives that are no greater than a gradient's greatest element.
TEST(NaiveTreeLstmGradients, AreThoseOfCentralDifferences) {
  Parameters parameters = drawn_parameters();
  for (const auto& [name, gradient] : naive_gradients(parameters)) {
    ASSERT_GT(greatest_of(gradient), 0.01) << name;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double& element = parameters[name][i];
      const double before = element;
      element = before + 1e-5;
      const double above = naive_loss(parameters);
      element = before - 1e-5;
      const double below = naive_loss(parameters);
      element = before;
      ASSERT_NEAR(gradient[i], (above - below) / 2e-5, 1e-6 * greatest_of(gradient)) << name << ' ' << i;
    }
  }
}

/// The groups of a batch, packed.
struct PackedBatch {
  explicit PackedBatch(BatchingPolicy policy) {
    const std::vector<VertexGraph> graphs = graphs_of_own_tokens();
    for (std::size_t first = 0; first < kSamples; first += kGroup) {
      std::vector<std::int32_t> tokens_of(kGroup * kRoom), labels_of(kGroup * kRoom),
          structure_of(kGroup * kRoom * (kChildren + 1));
      const VertexGraph* const group[] = {&graphs[first], &graphs[first + 1]};
      rounds.push_back(GraphPacker().pack(group, policy, kChildren, {tokens_of, labels_of, structure_of}));
      rows.push_back(group[0]->vertices() + group[1]->vertices());
      tokens.insert(tokens.end(), tokens_of.begin(), tokens_of.end());
      labels.insert(labels.end(), labels_of.begin(), labels_of.end());
      structure.insert(structure.end(), structure_of.begin(), structure_of.end());
    }
  }

  /// Of the first group, rows of each round.
  std::vector<std::int64_t> sizes() const {
    std::vector<std::int64_t> sizes;
    double before = 0;
    for (std::size_t round = 0; round < static_cast<std::size_t>(rounds[0]); ++round) {
      const double end = structure[(round + 1) * (kChildren + 1) - 1];
      sizes.push_back(std::llround(end - before));
      before = end;
    }
    return sizes;
  }

  Values tokens, labels, structure;
  std::vector<std::int32_t> rows;
  std::vector<int> rounds;
};

class PackedTreeLstm : public testing::TestWithParam<BatchingPolicy> {};

// The longest chain of roundings goes up the highest graph and back: at each of its vertices through a sum of
// `kHidden` products, as many of all children, and some ten functions. Numbers are near 1, and so is what a
// rounding does to what follows. n roundings in a row, each of a deviation of 2^-24 / sqrt(6) twice, as in
// rounding_error() of tests/trainer, leave sqrt(3 n) 2^-24 of a gradient's greatest element at three
// deviations.
double roundings_of_the_highest() {
  std::int32_t height = 0;
  for (const VertexGraph& graph : graphs_of_own_tokens()) {
    std::vector<std::int32_t> heights(static_cast<std::size_t>(graph.vertices()));
    height = std::max(height, find_heights(graph, heights));
  }
  return 2.0 * (height + 1) * (2 * kHidden + kChildren + 10);
}

std::vector<RoundsForm> all_forms() {
  std::vector<RoundsForm> forms;
  for (const bool eager : {true, false})
    for (const bool lazy : {true, false})
      for (const bool fused : {true, false}) forms.push_back({eager, lazy, fused});
  return forms;
}

TEST_P(PackedTreeLstm, HasTheGradientsOfTheRecursionWhateverTheFormOfItsRounds) {
  const Parameters parameters = drawn_parameters(), expected = naive_gradients(parameters);
  const PackedBatch batch(GetParam());
  const double tolerance = std::sqrt(3 * roundings_of_the_highest()) * std::ldexp(1.0, -24);
  double worst = 0;
  for (const RoundsForm& form : all_forms()) {
    SCOPED_TRACE(fmt::format("eager {}, lazy {}, fused {}", form.eager, form.lazy, form.fused));
    const Graph graph = training_step_graph(weighed_tree_lstm(form), kSamples);
    const auto device = make_cpu_device(1);
    Interpreter step(*device, graph);
    for (const State& state : graph.states)
      if (parameters.contains(state.name)) step.set(state.value, parameters.at(state.name));
    for (const Input& input : graph.inputs) {
      const std::string& name = value_of(graph, input.value).name;
      if (name == "tokens") step.set(input.value, batch.tokens);
      if (name == "labels") step.set(input.value, batch.labels);
      if (name == "structure") step.set(input.value, batch.structure);
      if (input.kind == InputKind::loss_scale) step.set(input.value, {1.0});
    }
    RunPoint point;
    point.group_rows = batch.rows;
    step.run_micro_batch(true, point);
    EXPECT_NEAR(step.get(graph.loss)[0], naive_loss(parameters), tolerance * kTokens);
    std::size_t compared = 0;
    for (const Node& node : graph.nodes) {
      if (node.op->name != "adamw") continue;
      const std::string& name = value_of(graph, node.operands[0]).name;
      const Values gradient = step.get(node.operands[1]), &exact = expected.at(name);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        EXPECT_NEAR(gradient[i], exact[i], tolerance * greatest_of(exact)) << name << ' ' << i;
        worst = std::max(worst, std::abs(gradient[i] - exact[i]) / greatest_of(exact) / tolerance);
      }
      ++compared;
    }
    EXPECT_EQ(compared, parameters.size());
  }
  RecordProperty("worst", fmt::format("{:.3f}", worst));  // in parts of what is allowed
}

/// What the rounds of a group are by its graphs alone.
std::int64_t rounds_by_heights(BatchingPolicy policy, std::span<const VertexGraph> group) {
  std::int64_t levels = 0, greatest = 0, vertices = 0;
  for (const VertexGraph& graph : group) {
    std::vector<std::int32_t> heights(static_cast<std::size_t>(graph.vertices()));
    const std::int64_t own = 1 + find_heights(graph, heights);
    levels += own;
    greatest = std::max(greatest, own);
    vertices += graph.vertices();
  }
  return policy == BatchingPolicy::serial       ? vertices
         : policy == BatchingPolicy::per_sample ? levels
                                                : greatest;
}

TEST_P(PackedTreeLstm, TakesTheWorkOfItsVerticesAndTheWeightsOfItsRounds) {
  const std::vector<VertexGraph> graphs = graphs_of_own_tokens();
  const PackedBatch batch(GetParam());
  std::int64_t rounds = 0;
  for (std::size_t group = 0; group < batch.rounds.size(); ++group) {
    const std::int64_t by_heights =
        rounds_by_heights(GetParam(), std::span(graphs).subspan(kGroup * group, kGroup));
    EXPECT_EQ(batch.rounds[group], by_heights);
    if (group == 0) rounds = by_heights;
  }

  // Every group of the batch is taken for one like the first.
  ModelDefinition model = weighed_tree_lstm();
  model.graphs[0].rounds = batch.sizes();
  const double h = kHidden, groups = kSamples / kGroup, vertices = groups * batch.rows[0];
  // Three gates of the children's sum, a forget gate of each child.
  const double products = vertices * (2 * h * 3 * h + kChildren * 2 * h * h);
  // Gates are added up, 2 of 3 are sigmoids, one and the cell's is a tanh (of 15 each); two products of
  // gates; for each child a sum, a sigmoid, a product and a sum.
  const double functions = vertices * h * (3 + 4 * 15 + 2 + kChildren * (1 + 15 + 1 + 1));
  int found = 0;
  for (const Graph graph = training_step_graph(model, kSamples); const Node& node : graph.nodes) {
    if (!node.op->runs_rounds) continue;
    const bool back = node.op->name == "rounds_grad";
    const std::vector<TensorType> operands = operand_types(graph, node);
    const OpCall call{operands, node.attributes};
    const double flops = flops_of(*node.op, call);
    if (back) {
      EXPECT_GT(flops, products);
    } else {
      EXPECT_NEAR(flops, products + functions, 1e-9 * flops);
    }

    std::int64_t of_rows = 0, of_weights = 0;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const Shape& shape = call.operands[i].shape;
      (shape.size() == 3 ? of_rows : of_weights) += shape.size() == 3 ? shape[2] : element_count(shape);
    }
    for (const ValueIndex result : node.results) of_rows += value_of(graph, result).type.shape[2];
    EXPECT_EQ(of_weights, 3 * kHidden * kHidden + kHidden * kHidden);
    EXPECT_EQ(bytes_moved_by(*node.op, call),
              std::llround(4 * (vertices * static_cast<double>(of_rows) +
                                groups * static_cast<double>(rounds * of_weights))));

    // What the kernel does in each round, and for each edge.
    const VertexProgram program = vertex_program(call);
    std::int64_t multiplied = 0, gathered = 0, returned = 0, work = 0;
    for (const auto& step : program.steps) {
      if (const auto* const product = std::get_if<MultiplyRows>(&step)) {
        ++multiplied;
        work += 2 * product->sum * product->columns;
      }
      if (const auto* const gather = std::get_if<GatherRows>(&step)) gathered += gather->width;
    }
    for (const ReturnRows& each : program.returns) returned += each.width;
    EXPECT_EQ(multiplied, 1 + kChildren);
    EXPECT_EQ(vertices * static_cast<double>(work), products);
    // The sum and each of the children's states, and their cells; the backward finds them with the results.
    EXPECT_EQ(gathered, back ? 0 : 3 * std::int64_t{kHidden});
    EXPECT_EQ(returned, back ? 3 * std::int64_t{kHidden} : 0);
    ++found;
  }
  EXPECT_EQ(found, 2) << "there and back";
}

// Gradients of weights in the rounds: each round reads and writes their sums.
TEST_P(PackedTreeLstm, TakesSumsOverTheRowsOfItsRoundsWhereTheseHaveAll) {
  const PackedBatch batch(GetParam());
  ModelDefinition model = weighed_tree_lstm({false, false, false});
  model.graphs[0].rounds = batch.sizes();
  const std::int64_t h = kHidden, rounds = std::ssize(batch.sizes()), groups = kSamples / kGroup,
                     input = kWide * 4 * h, recurrent = h * 3 * h, forget = h * h;
  int found = 0;
  for (const Graph graph = training_step_graph(model, kSamples); const Node& node : graph.nodes) {
    if (node.op->name == "einsum" && node.layer == 1) FAIL() << graph_text(graph);
    if (node.op->name != "rounds_grad") continue;
    const std::vector<TensorType> operands = operand_types(graph, node);
    const OpCall call{operands, node.attributes};
    std::int64_t of_rows = 0, of_sums = 0, of_products = 0, of_bias = 0;
    for (const auto& step : vertex_program(call).steps)
      if (const auto* const sum = std::get_if<SumRows>(&step))
        (sum->left ? of_products : of_bias) += sum->left_width * sum->width;
    EXPECT_EQ(of_products, input + recurrent + kChildren * forget);
    EXPECT_EQ(of_bias, 4 * h);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].shape.size() == 3) of_rows += operands[i].shape[2];
    for (const ValueIndex result : node.results) {
      const Shape& shape = value_of(graph, result).type.shape;
      (shape.size() == 3 ? of_rows : of_sums) += shape.size() == 3 ? shape[2] : element_count(shape);
    }
    EXPECT_EQ(of_sums, of_products + of_bias);
    EXPECT_EQ(bytes_moved_by(*node.op, call),
              4 * groups * (batch.rows[0] * of_rows + rounds * (input + recurrent + forget + 2 * of_sums)));
    ++found;
  }
  EXPECT_EQ(found, 1);
}

INSTANTIATE_TEST_SUITE_P(Policies, PackedTreeLstm,
                         testing::Values(BatchingPolicy::serial, BatchingPolicy::per_sample,
                                         BatchingPolicy::frontier, BatchingPolicy::agenda),
                         [](const auto& policy) {
                           std::string name(batching_name(policy.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace alpa
