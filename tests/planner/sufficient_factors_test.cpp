// Poseidon (ATC'17, algorithm 3): which gradients data-parallel devices sum up, and which every device makes
// of factors that it gathers.
#include <gtest/gtest.h>

#include <cmath>

#include "libalpa/program/order/verify.h"
#include "libalpa/sharding/strategy.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

constexpr std::int64_t kRows = 96, kColumns = 128;
constexpr int kDevices = 4;
constexpr double kWire = 1e9, kFlops = 2e10;  ///< bytes and FLOPs a second

/// A product of `samples` rows, which are no input that any device might read, with one weight, and what
/// makes a loss of it.
Graph one_product(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  g.begin_layer("layer");
  const ValueIndex x = g.add("gelu", {g.input(InputKind::data, {DType::f32, {samples, kRows}}, "x")});
  const ValueIndex weight =
      g.state("weight", {DType::f32, {kRows, kColumns}}, {Initializer::Kind::normal, 0.1}, true);
  const ValueIndex y = g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}});
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {y, y})});
  return training_graph(g.finish(), op_catalog(), {});
}

/// Whose messages take nothing but their bytes, and whose products take nothing but their arithmetic.
Cluster wire_and_arithmetic() {
  Cluster cluster = small_cluster(1);
  cluster.nodes = kDevices;
  cluster.launch_s = 0;
  cluster.memory_bytes_per_s = 1e15;
  cluster.f32_flops_per_s = kFlops;
  cluster.between_nodes = {0, kWire};
  return cluster;
}

Lowered planned(const std::string& method, std::int64_t samples_of_device, int micro_batches = 1) {
  PlannerOptions options;
  options.method = method;
  options.micro_batches = micro_batches;
  const std::int64_t batch = kDevices * samples_of_device;
  Lowered lowered;
  lowered.plan = plan_quietly({"product", "", batch, one_product}, wire_and_arithmetic(), options);
  lowered.graph = one_product(batch / micro_batches);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

bool gathers_factors(const Lowered& lowered) {
  bool gathers = false;
  for (const NodeIndex n : lowered.graph.nodes.indices()) {
    const Node& node = lowered.graph.nodes[n];
    if (node.phase == Phase::backward && std::string_view(node.op->name) == "einsum")
      gathers = gathers || lowered.plan.node_strategy[n] == Strategy{kIdleAxis};
  }
  return gathers;
}

/// Bytes that the devices of a group handle in the conversions of that kind, in one run of each segment.
double converted_bytes(const Lowered& lowered, ConversionKind kind) {
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  double bytes = 0;
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* convert = std::get_if<Convert>(&instruction.body);
          convert && convert->step.kind == kind && mesh.buffers[convert->from].tile.shape.size() == 2)
        bytes += step_bytes(convert->step, mesh.buffers[convert->from].tile, mesh.buffers[convert->to].tile);
  return bytes;
}

/// Samples of a device up to which factors are cheaper: a device gets 2 (P - 1) / P M N s bytes of an
/// all-reduce, or (P - 1) K (M + N) s of the factors, and then has 2 (P - 1) K M N more FLOPs to do.
double crossover() {
  const double m = kRows, n = kColumns, s = 4;
  return 2 * m * n / (kDevices * ((m + n) + 2 * m * n * kWire / (s * kFlops)));
}

TEST(SufficientFactors, AreGatheredUpToTheCrossoverOfTheFormula) {
  const auto last = static_cast<std::int64_t>(std::floor(crossover()));
  ASSERT_GT(last, 4);
  for (const std::int64_t samples : {std::int64_t{1}, last - 1, last})
    EXPECT_TRUE(gathers_factors(planned("poseidon", samples))) << samples << " of " << crossover();
  for (const std::int64_t samples : {last + 1, last + 2, 4 * last})
    EXPECT_FALSE(gathers_factors(planned("poseidon", samples))) << samples << " of " << crossover();
}

TEST(SufficientFactors, TakeTheBytesOfTheFormula) {
  const std::int64_t samples = 4;
  const Lowered factors = planned("poseidon", samples), sums = planned("data-parallel", samples);
  EXPECT_NO_THROW(verify(factors.program));
  const auto bytes = static_cast<double>(kDevices * samples * (kRows + kColumns) * 4);
  EXPECT_EQ(converted_bytes(factors, ConversionKind::all_gather), bytes);
  EXPECT_EQ(converted_bytes(factors, ConversionKind::all_reduce), 0);
  EXPECT_EQ(converted_bytes(sums, ConversionKind::all_gather), 0);
  EXPECT_EQ(converted_bytes(sums, ConversionKind::all_reduce), static_cast<double>(kRows * kColumns * 4));
  EXPECT_LT(factors.plan.prediction.step_s, sums.plan.prediction.step_s);
}

TEST(SufficientFactors, OfAllMicroBatchesCountTogether) {
  // Each micro-batch gathers its own, the sum is added up once: K is that of the step.
  const auto last = static_cast<std::int64_t>(std::floor(crossover()));
  EXPECT_TRUE(gathers_factors(planned("poseidon", last / 2 * 2, 2)));
  EXPECT_FALSE(gathers_factors(planned("poseidon", 2 * last, 2)));
}

TEST(SufficientFactors, AreNoPartOfDataParallelism) {
  EXPECT_FALSE(gathers_factors(planned("data-parallel", 1)));
}

// Else it would be data parallelism, which is one of them.
TEST(SufficientFactors, AreABaselineWhereTheyAreFewerBytesThanTheSum) {
  const auto last = static_cast<std::int64_t>(2 * kRows * kColumns / (kDevices * (kRows + kColumns)));
  const auto tries_them = [](std::int64_t samples) {
    return std::ranges::any_of(planned("auto", samples).plan.prediction.candidates,
                               [](const Candidate& each) { return each.method.starts_with("poseidon"); });
  };
  EXPECT_TRUE(tries_them(last));
  EXPECT_FALSE(tries_them(last + 1));
}

TEST(SufficientFactors, MakeNoPlanSlower) {
  PlannerOptions options;
  options.micro_batches = 1;
  options.method = "data-parallel";
  Cluster cluster = small_cluster(1);
  cluster.nodes = 2;
  const double sums_s = plan_quietly(small_model(), cluster, options).prediction.step_s;
  options.method = "poseidon";
  EXPECT_LE(plan_quietly(small_model(), cluster, options).prediction.step_s, sums_s);
}

}  // namespace
}  // namespace alpa
