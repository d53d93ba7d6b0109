// The collectives of each way of splitting are those that theory gives, read from the lowered program: which
// kind, over which mesh axis, how often per micro-batch (forward, backward) or per step (update).
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <map>

#include "libalpa/model/model.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

/// By segment and label: {"forward all-reduce 0", 4}, {"update send", 1}.
using Counts = std::map<std::string, int>;

using GraphOf = std::function<Graph(std::int64_t samples)>;

struct Stage {
  int layers;
  std::string mesh, axes, state_sharding;
};

Counts counts_of(const MeshProgram& mesh, const Graph& graph) {
  Counts counts;
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions) {
      const std::string kind = std::string(segment_name(segment.kind)) + " ";
      const auto* convert = std::get_if<Convert>(&instruction.body);
      if ((convert && convert->step.kind != ConversionKind::slice) ||
          std::holds_alternative<Shift>(instruction.body))
        ++counts[kind + instruction_label(instruction, graph)];
      if (std::holds_alternative<Send>(instruction.body)) ++counts[kind + "send"];
      if (std::holds_alternative<Receive>(instruction.body)) ++counts[kind + "receive"];
    }
  return counts;
}

Cluster one_node() {
  Cluster cluster = testing_models::small_cluster(12);
  cluster.f32_flops_per_s = 1e9;  // slow beside its links: all that can be split is
  return cluster;
}

/// Communication of each stage of a plan for a batch of 8 samples.
std::vector<Counts> counts_of(const GraphOf& graph_of, const std::vector<Stage>& stages,
                              const Cluster& cluster = one_node()) {
  std::string pin = "micro_batches = 2\nschedule = \"1f1b\"\n";
  for (const Stage& stage : stages)
    pin += "[[stage]]\nlayers = " + std::to_string(stage.layers) + "\nmesh = [" + stage.mesh + "]\naxes = [" +
           stage.axes + "]\nstate_sharding = \"" + stage.state_sharding + "\"\n";
  PlannerOptions options = testing_models::without_buckets();
  options.pin = parse_pin(pin, "pin");
  options.rematerialize = Rematerialize::never;
  Log log("test", LogLevel::off);
  const Plan plan = make_plan({"tiny", "", 8, graph_of}, CostModel(cluster), options, log);
  const Graph graph = graph_of(plan.micro_batch_samples);
  const Program program = lower(graph, plan);
  std::vector<Counts> counts;
  for (const MeshProgram& stage : program.meshes) counts.push_back(counts_of(stage, graph));
  return counts;
}

Counts of_update(Counts counts) {
  std::erase_if(counts, [](const auto& count) { return !count.first.starts_with("update"); });
  return counts;
}

class Collectives : public testing::TestWithParam<int> {
 protected:
  /// Of the tiny GPT (layers: embedding, blocks, head).
  std::vector<Counts> of(const std::vector<Stage>& stages, const Cluster& cluster = one_node()) const {
    return counts_of([this](std::int64_t samples) { return testing_models::tiny_gpt(samples, blocks_); },
                     stages, cluster);
  }

  static Counts without_transfers(Counts counts) {
    std::erase_if(counts, [](const auto& count) {
      return count.first.ends_with("send") || count.first.ends_with("receive");
    });
    return counts;
  }

  const int blocks_ = GetParam();
  /// States of the model: 16 a block; the table, which is used twice, the positions, the gain and bias of the
  /// last norm.
  const int parameters_ = 16 * blocks_ + 4;
  /// Those that the backward reads: of each block six matrices and two gains; the table, and the last gain.
  const int read_backward_ = 8 * blocks_ + 2;
};

/// Of a message as short as here the all-reduce is one exchange, as a reduce-scatter is, so either may be
/// what a split sum is made by.
Counts as_scatters(Counts counts, const std::string& all_reduce) {
  if (auto reduced = counts.extract(all_reduce); !reduced.empty()) {
    std::string scatter = all_reduce;
    scatter.replace(scatter.find("all-reduce"), 10, "reduce-scatter");
    counts[scatter] += reduced.mapped();
  }
  return counts;
}

// Sums of the gradients' parts wait for the end of the step, and so does the sum of the table's two
// gradients.
TEST_P(Collectives, OfDataParallelAreOneAllReducePerGradientAndStep) {
  EXPECT_EQ(of({{blocks_ + 2, "2", "\"data\"", "none"}})[0], (Counts{{"update all-reduce 0", parameters_}}));
}

// Rajbhandari et al., "ZeRO", section 5: as many bytes as an all-reduce, which is these two.
TEST_P(Collectives, OfZero1AreOneReduceScatterAndOneAllGatherPerParameterAndStep) {
  EXPECT_EQ(of({{blocks_ + 2, "2", "\"data\"", "optimizer"}})[0],
            (Counts{{"update reduce-scatter 0", parameters_}, {"update all-gather 0", parameters_}}));
}

// A gradient that is not kept whole leaves as soon as it is made; the table has two.
TEST_P(Collectives, OfZero2AreAReduceScatterPerGradientAndMicroBatchAndAnAllGatherPerStep) {
  EXPECT_EQ(of({{blocks_ + 2, "2", "\"data\"", "gradients"}})[0],
            (Counts{{"backward reduce-scatter 0", parameters_ + 1}, {"update all-gather 0", parameters_}}));
}

TEST_P(Collectives, OfZero3AreAnAllGatherWhereAParameterIsReadAndAReduceScatterPerGradient) {
  EXPECT_EQ(of({{blocks_ + 2, "2", "\"data\"", "parameters"}})[0],
            (Counts{{"forward all-gather 0", parameters_},
                    {"backward all-gather 0", read_backward_},
                    {"backward reduce-scatter 0", parameters_ + 1}}));
}

// Shoeybi et al., "Megatron-LM", figure 4: heads and features split, two sums forward and two backward in a
// block.
TEST_P(Collectives, OfTensorParallelBlocksAreFourAllReducesABlock) {
  const Stage one{1, "1", "", "free"};
  EXPECT_EQ(without_transfers(of({one, {blocks_, "2", "\"tensor\"", "none"}, one})[1]),
            (Counts{{"forward all-reduce 0", 2 * blocks_}, {"backward all-reduce 0", 2 * blocks_}}));
}

TEST_P(Collectives, OfDataTimesTensorParallelBlocksAreThoseOfBothEachOverItsAxis) {
  const Stage one{1, "1", "", "free"};
  EXPECT_EQ(without_transfers(of({one, {blocks_, "2, 2", "\"data\", \"tensor\"", "none"}, one})[1]),
            (Counts{{"forward all-reduce 1", 2 * blocks_},
                    {"backward all-reduce 1", 2 * blocks_},
                    {"update all-reduce 0", 16 * blocks_}}));
}

// Likewise over three axes. A device has two samples: it exchanges halves of keys and values, then gathers
// samples in place of positions, and nothing has to be packed.
TEST_P(Collectives, OfDataTimesSequenceTimesTensorParallelBlocksAreThoseOfEachOverItsAxis) {
  const Stage one{1, "1", "", "free"};
  EXPECT_EQ(without_transfers(
                of({one, {blocks_, "2, 2, 2", "\"data\", \"sequence\", \"tensor\"", "none"}, one})[1]),
            (Counts{{"forward all-to-all 1", 2 * blocks_},
                    {"forward all-gather 1", 2 * blocks_},
                    {"forward all-reduce 2", 2 * blocks_},
                    {"backward all-to-all 1", 2 * blocks_},
                    {"backward reduce-scatter 1", 2 * blocks_},
                    {"backward all-reduce 2", 2 * blocks_},
                    {"update all-reduce 0", 16 * blocks_},
                    {"update all-reduce 1", 16 * blocks_}}));
}

// Between nodes go only shares of a gradient that the data-parallel devices of a node have added up; and of
// what those of a tensor axis have alike (gains and biases of norms, biases of what they add up), half of
// that.
TEST_P(Collectives, OfDataParallelWithinAndBetweenNodesAreASumOfSharesBetweenThem) {
  Cluster cluster = one_node();
  cluster.nodes = 3;
  cluster.devices_per_node = 4;
  cluster.between_nodes = {1e-6, 1e6};
  const Stage one{1, "1", "", "free"};
  EXPECT_EQ(of_update(without_transfers(
                of({one, {blocks_, "2, 2, 2", "\"data\", \"data\", \"tensor\"", "none"}, one}, cluster)[1])),
            (Counts{{"update reduce-scatter 1", 16 * blocks_},
                    {"update all-reduce 0", 16 * blocks_},
                    {"update all-gather 1", 16 * blocks_},
                    {"update all-gather 2", 6 * blocks_}}));
}

// Of split logits the maximum and the sum of exponentials; the loss is summed with that of all ranks, once
// per step. The losses of tokens are reduced where they are made or where the backward takes their shape.
TEST_P(Collectives, OfASplitVocabularyAreTwoAllReducesForwardAndOneBackward) {
  EXPECT_THAT(without_transfers(of({{blocks_ + 1, "1", "", "free"}, {1, "2", "\"tensor\"", "none"}})[1]),
              testing::AnyOf(Counts{{"forward all-reduce 0", 2}, {"backward all-reduce 0", 2}},
                             Counts{{"forward all-reduce 0", 3}, {"backward all-reduce 0", 1}}));
}

// Each rank's queries meet all keys and values; all else is local to a position. The positions' gradient is
// whole where its positions are, and their new values are gathered.
TEST_P(Collectives, OfSequenceParallelAreTheGatheredKeysAndValues) {
  EXPECT_EQ(as_scatters(of({{blocks_ + 2, "2", "\"sequence\"", "none"}})[0], "backward all-reduce 0"),
            (Counts{{"forward all-gather 0", 2 * blocks_},
                    {"backward reduce-scatter 0", 2 * blocks_},
                    {"update all-reduce 0", parameters_ - 1},
                    {"update all-gather 0", 1}}));
}

// Keys and values meet all queries by going round, three steps among four ranks. Backward their gradients
// follow one step behind, so there are four, the first without gradients and the last with nothing else.
TEST_P(Collectives, OfARingAreTheShiftsOfKeysAndValuesAndOfTheirGradients) {
  EXPECT_EQ(of({{blocks_ + 2, "4", "\"ring\"", "none"}})[0], (Counts{{"forward shift 0", 3 * blocks_},
                                                                     {"backward shift 0", 4 * blocks_},
                                                                     {"update all-reduce 0", parameters_ - 1},
                                                                     {"update all-gather 0", 1}}));
}

// One activation forward and its gradient backward per boundary and micro-batch. The table is on the first
// stage at home: its gradient comes from the last stage and its new values go there, once per step.
TEST_P(Collectives, OfAPipelineAreNoneButTwoTransfersPerBoundaryAndMicroBatch) {
  const std::vector<Counts> stages = of({{2, "1", "", "free"}, {blocks_, "1", "", "free"}});
  EXPECT_EQ(
      stages[0],
      (Counts{{"forward send", 1}, {"backward receive", 1}, {"update receive", 1}, {"update send", 1}}));
  EXPECT_EQ(
      stages[1],
      (Counts{{"forward receive", 1}, {"backward send", 1}, {"update receive", 1}, {"update send", 1}}));
}

INSTANTIATE_TEST_SUITE_P(OfBlocks, Collectives, testing::Values(2, 3));

/// `layers` layers of a block on samples that are numbers, for which no gradient is owed, and a loss of what
/// comes out. Of seven positions a tensor axis can split none.
GraphOf on_numbers(const std::string& block, int layers) {
  const std::string text = R"(
name = "on_numbers"
[dimensions]
positions = 7
model = 16
[input.x]
shape = ["positions", "model"]
[[layer]]
block = ")" + block + R"("
repeat = )" + std::to_string(layers) +
                           R"(
of = "x"
as = "x"
heads = 4
[[layer]]
block = "squares"
of = "x"
as = "loss"
[block.squares]
inputs = ["x"]
outputs = ["loss"]
steps = [{op = "mul", of = ["x", "x"], as = "y"}, {op = "reduce_sum", of = "y", as = "loss"}]
[block.dense]
parameters = ["model"]
defaults = {heads = 1}
inputs = ["x"]
outputs = ["x"]
steps = [
  {op = "einsum", equation = "b s i, i o -> b s o", of = ["x", "weight"], as = "x"},
  {op = "gelu", of = "x", as = "x"},
]
[block.dense.weights]
weight = {shape = ["model", "model"], init = "ones"}
)";
  const ModelDefinition model =
      parse_model(text, "on_numbers.toml", {std::filesystem::path(ALPA_SOURCE_DIR) / "share/blocks"});
  return [model](std::int64_t samples) { return training_step_graph(model, samples); };
}

/// Forward and backward together.
Counts of_activations(const Counts& counts) {
  Counts sums;
  for (const auto& [label, count] : counts)
    if (!label.starts_with("update")) sums[label.substr(label.find(' ') + 1)] += count;
  return sums;
}

// The oracles of Alpa's own tests, which are for models on numbers.

// An all-reduce between each two layers. Here it is a reduce-scatter one way and an all-gather the other, as
// many bytes: the activation between them is then worked out once.
TEST(CollectivesOfAnMlp, AreAnAllReduceBetweenEachTwoLayersAndOnePerWeight) {
  for (const int layers : {2, 3, 4, 5}) {
    const GraphOf mlp = on_numbers("dense", layers);
    const Counts data = counts_of(mlp, {{layers + 1, "2", "\"data\"", "none"}})[0];
    EXPECT_EQ(data, (Counts{{"update all-reduce 0", layers}})) << layers;
    const Counts tensor = counts_of(mlp, {{layers + 1, "2", "\"tensor\"", "none"}})[0];
    EXPECT_EQ(tensor.size(), 2u);
    EXPECT_EQ(as_scatters(of_activations(tensor), "all-reduce 0"),
              (Counts{{"reduce-scatter 0", layers - 1}, {"all-gather 0", layers - 1}}))
        << layers;
    const Counts both = counts_of(mlp, {{layers + 1, "2, 2", "\"data\", \"tensor\"", "none"}})[0];
    EXPECT_EQ(as_scatters(of_activations(both), "all-reduce 1"),
              (Counts{{"reduce-scatter 1", layers - 1}, {"all-gather 1", layers - 1}}))
        << layers;
    EXPECT_EQ(of_update(both), (Counts{{"update all-reduce 0", layers}})) << layers;
  }
}

// Four a block, but none for the gradient of the samples.
TEST(CollectivesOfBert, AreFourAllReducesABlockLessOneAndOnePerWeight) {
  for (const int blocks : {1, 2, 3}) {
    const GraphOf bert = on_numbers("bert_block", blocks);
    EXPECT_EQ(counts_of(bert, {{blocks + 1, "2", "\"tensor\"", "none"}})[0],
              (Counts{{"forward all-reduce 0", 2 * blocks}, {"backward all-reduce 0", 2 * blocks - 1}}));
    EXPECT_EQ(counts_of(bert, {{blocks + 1, "2, 2", "\"data\", \"tensor\"", "none"}})[0],
              (Counts{{"forward all-reduce 1", 2 * blocks},
                      {"backward all-reduce 1", 2 * blocks - 1},
                      {"update all-reduce 0", 16 * blocks}}));
  }
}

}  // namespace
}  // namespace alpa
