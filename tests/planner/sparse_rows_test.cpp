// Gradients of tables as rows of the ids of samples (Parallax, EuroSys'19): when these are planned, and at
// what price.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "libalpa/program/order/verify.h"
#include "libalpa/sharding/strategy.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

constexpr std::int64_t kTableRows = 301, kTableWidth = 64;
constexpr int kRowDevices = 4;

/// A row of a table for each sample, times a weight, and what makes a loss of it.
Graph one_table(std::int64_t samples, EmbeddingGradients gradients, double distinct_ids) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  g.begin_layer("layer");
  const ValueIndex ids = g.input(InputKind::data, {DType::i32, {samples, 1}}, "ids");
  g.graph().inputs.back().below = kTableRows;
  const Initializer normal{Initializer::Kind::normal, 0.1};
  const ValueIndex table = g.state("table", {DType::f32, {kTableRows, kTableWidth}}, normal, true);
  const ValueIndex weight = g.state("weight", {DType::f32, {kTableWidth, kTableWidth}}, normal, true);
  const ValueIndex x = g.add("gelu", {g.add("embedding", {table, ids})});
  const ValueIndex y = g.add("einsum", {x, weight}, {{"equation", "b s d, d f -> b s f"}});
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {y, y})});
  TrainingOptions options;
  options.embedding_gradients = gradients;
  options.distinct_ids = distinct_ids;
  return training_graph(g.finish(), op_catalog(), options);
}

/// Nothing but bytes on the wire takes time.
Cluster wire_alone() {
  Cluster cluster = small_cluster(1);
  cluster.nodes = kRowDevices;
  cluster.launch_s = 0;
  cluster.memory_bytes_per_s = cluster.f32_flops_per_s = 1e15;
  cluster.between_nodes = {0, 1e6};
  return cluster;
}

Lowered planned(const std::string& method, std::int64_t samples_of_device, EmbeddingGradients gradients,
                double distinct_ids = 0) {
  const auto graph = [&](std::int64_t samples) { return one_table(samples, gradients, distinct_ids); };
  PlannerOptions options;
  options.method = method;
  options.micro_batches = 1;
  options.sync = "each";
  const std::int64_t batch = kRowDevices * samples_of_device;
  Lowered lowered;
  lowered.plan = plan_quietly({"table", "", batch, graph}, wire_alone(), options);
  lowered.graph = graph(batch);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

/// Whether every device makes the gradient that this operator makes.
bool repeats(const Lowered& lowered, std::string_view op) {
  for (const NodeIndex n : lowered.graph.nodes.indices()) {
    const Node& node = lowered.graph.nodes[n];
    if (node.phase == Phase::backward && node.op->name == op &&
        value_of(lowered.graph, node.results[0]).type.shape.size() == 2)
      return lowered.plan.node_strategy[n] == Strategy{kIdleAxis};
  }
  ADD_FAILURE() << "no " << op;
  return false;
}
bool gathers_rows(const Lowered& lowered) { return repeats(lowered, "embedding_grad"); }

double different_ids(std::int64_t drawn) {
  return kTableRows * (1 - std::pow(1 - 1.0 / kTableRows, static_cast<double>(drawn)));
}

/// Samples K of a device up to which what it gets is fewer bytes: (P - 1) d s of each row and s of each id,
/// or 2 (P - 1) / P V d s of a sum.
std::int64_t crossover(const std::function<double(std::int64_t)>& rows, bool gets_ids) {
  std::int64_t samples = 0;
  const double most = 2.0 / kRowDevices * kTableRows * kTableWidth;
  const auto numbers = [&](std::int64_t n) {
    return static_cast<double>(kTableWidth) * rows(n) + static_cast<double>(gets_ids ? n : 0);
  };
  while (numbers(samples + 1) <= most) ++samples;
  return samples;
}

void expect_crossover(std::int64_t last, EmbeddingGradients gradients, double distinct_ids = 0) {
  for (const std::int64_t samples : {std::int64_t{1}, last - 1, last})
    EXPECT_TRUE(gathers_rows(planned("parallax", samples, gradients, distinct_ids)))
        << samples << " of " << last;
  for (const std::int64_t samples : {last + 1, last + 2, 4 * last})
    EXPECT_FALSE(gathers_rows(planned("parallax", samples, gradients, distinct_ids)))
        << samples << " of " << last;
}

TEST(SparseRows, AreGatheredUpToTheCrossoverOfTheFormula) {
  // Ids of samples are an input, which every device reads.
  const auto each = [](std::int64_t n) { return static_cast<double>(n); };
  const std::int64_t of_samples = crossover(each, false), of_ids = crossover(different_ids, true);
  EXPECT_GT(of_ids, of_samples + 10);
  expect_crossover(of_samples, EmbeddingGradients::dense);
  expect_crossover(of_ids, EmbeddingGradients::sparse);
}

TEST(SparseRows, AreAsManyAsTheModelSays) {
  const auto half = [](std::int64_t n) { return 0.5 * static_cast<double>(n); };
  expect_crossover(crossover(half, true), EmbeddingGradients::sparse, 0.5);
}

TEST(SparseRows, AreOfTablesAlone) {
  const Lowered rows = planned("parallax", 2, EmbeddingGradients::sparse),
                factors = planned("poseidon", 2, EmbeddingGradients::sparse);
  EXPECT_NO_THROW(verify(rows.program));
  EXPECT_TRUE(gathers_rows(rows) && gathers_rows(factors));
  EXPECT_FALSE(repeats(rows, "einsum"));
  EXPECT_TRUE(repeats(factors, "einsum"));
}

TEST(SparseRows, AreNoPartOfDataParallelism) {
  EXPECT_FALSE(gathers_rows(planned("data-parallel", 1, EmbeddingGradients::sparse)));
}

TEST(SparseRows, KnowTheirIdsWhereTheyAreGathered) {
  const Lowered lowered = planned("parallax", 2, EmbeddingGradients::sparse);
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  int gathers_of_ids = 0, gathers_of_rows = 0;
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions) {
      const auto* const convert = std::get_if<Convert>(&instruction.body);
      if (!convert || convert->step.kind != ConversionKind::all_gather) continue;
      gathers_of_ids += mesh.buffers[convert->to].tile.dtype == DType::i32;
      if (convert->row_ids < 0) continue;
      ++gathers_of_rows;
      EXPECT_EQ(mesh.buffers[convert->row_ids].tile, (TensorType{DType::i32, {2 * kRowDevices, 1}}));
    }
  EXPECT_EQ(gathers_of_rows, 1);
  EXPECT_EQ(gathers_of_ids, 1);  // once, for the rows and for who adds them up
}

}  // namespace
}  // namespace alpa
