#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "libalpa/base/error.h"
#include "tests/model/models.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string head = R"(
[block.tiny_head]
parameters = ["words", "model"]
inputs = ["x", "targets"]
outputs = ["loss"]
steps = [
  {op = "einsum", equation = "b s d, v d -> b s v", of = ["x", "table"], as = "logits"},
  {op = "row_max", of = "logits", as = "m"},
  {op = "row_sum_exp", of = ["logits", "m"], as = "z"},
  {op = "cross_entropy", of = ["logits", "targets", "m", "z"], as = "losses"},
  {op = "reduce_sum", of = "losses", as = "loss"},
]
weights.table = {shape = ["words", "model"], init = {uniform = 0.5}}
)";

const std::string model_text = R"(name = "tiny"
[dimensions]
words = 6
model = 4
[training]
sequence = 3
[[layer]]
block = "rows"
of = "tokens"
as = "x"
[[layer]]
block = "turn"
repeat = 2
of = "x"
as = "x"
[[layer]]
block = "tiny_head"
of = ["x", "targets"]
as = "loss"
tie = {table = "rows.table"}
[block.rows]
parameters = ["words", "model"]
inputs = ["ids"]
outputs = ["x"]
steps = [{op = "embedding", of = ["table", "ids"], as = "x"}]
weights.table = {shape = ["words", "model"], init = {normal = "1.0 / model"}}
[block.turn]
parameters = ["model"]
defaults = {rate = 0, wide = "2 * model", shifted = 0}
inputs = ["x"]
outputs = ["y"]
steps = [
  {op = "einsum", equation = "b s d, d f -> b s f", of = ["x", "into"], as = "y"},
  {op = "bias_add", of = ["y", "shift"], as = "y", when = "shifted"},
  {op = "dropout", of = "y", as = "y", rate = "rate"},
  {op = "einsum", equation = "b s f, d f -> b s d", of = ["y", "into"], as = "y"},
]
[block.turn.weights]
into = {shape = ["model", "wide"], init = "ones"}
shift = {shape = ["wide"], init = "zeros", when = "shifted"}
)" + head;

std::string with(const std::string& what, const std::string& other) {
  std::string text = model_text;
  return text.replace(text.find(what), what.size(), other);
}

ModelDefinition model_of(const std::string& text) { return parse_model(text, "tiny.toml"); }

std::vector<std::string> weights_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const State& state : graph.states) names.push_back(state.name);
  return names;
}

std::int64_t count(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op->name == op; });
}

TEST(Blocks, UnfoldToTheGraphTheySay) {
  const Graph graph = forward_graph(model_of(model_text), 2, true);
  EXPECT_EQ(graph_text(graph), R"(samples 2
input %0 kind 0 i32[2x3]
input %1 kind 1 i32[2x3]
state %2 'rows.table' f32[6x4] init 2 0.25 next %-1 
state %4 'turn.0.into' f32[4x8] init 1 0 next %-1 
state %7 'turn.1.into' f32[4x8] init 1 0 next %-1 
%3 f32[2x3x4] = embedding  %2 %0 (forward, layer 0)
%5 f32[2x3x8] = einsum equation='b s d, d f -> b s f' %3 %4 (forward, layer 1)
%6 f32[2x3x4] = einsum equation='b s f, d f -> b s d' %5 %4 (forward, layer 1)
%8 f32[2x3x8] = einsum equation='b s d, d f -> b s f' %6 %7 (forward, layer 2)
%9 f32[2x3x4] = einsum equation='b s f, d f -> b s d' %8 %7 (forward, layer 2)
%10 f32[2x3x6] = einsum equation='b s d, v d -> b s v' %9 %2 (forward, layer 3)
%11 f32[2x3] = row_max  %10 (forward, layer 3)
%12 f32[2x3] = row_sum_exp  %10 %11 (forward, layer 3)
%13 f32[2x3] = cross_entropy  %10 %1 %11 %12 (forward, layer 3)
%14 f32[scalar] = reduce_sum  %13 (forward, layer 3)
loss %14
)");
  EXPECT_THAT(graph.layers, ElementsAre("rows", "turn.0", "turn.1", "tiny_head"));
}

const std::string counted = R"({op = "dropout", of = "y", as = "y", rate = "rate"},
  {metric = "energy", of = "y", per = "step", when = "counts"},)";

std::string with_metric(const std::string& step = counted) {
  std::string text = with(R"({op = "dropout", of = "y", as = "y", rate = "rate"},)", step);
  return text.replace(text.find("shifted = 0"), 11, "shifted = 0, counts = 1");
}

TEST(Blocks, AMetricSumsAValueOverAllPlacesOfItsName) {
  const ModelDefinition model = model_of(with_metric());
  const Graph graph = forward_graph(model, 2, true);
  ASSERT_EQ(graph.metrics.size(), 1u);
  EXPECT_EQ(graph.metrics[0].name, "energy");
  EXPECT_FALSE(graph.metrics[0].per_target);
  EXPECT_EQ(graph.metrics[0].values.size(), 2u);
  for (const ValueIndex value : graph.metrics[0].values)
    EXPECT_EQ(value_of(graph, value).type, (TensorType{DType::f32, {}}));
  EXPECT_THAT(graph_text(graph), HasSubstr("metric 'energy' per step %6 %10\n"));
  EXPECT_EQ(graph_text(forward_graph(model_of(model.expanded_toml), 2, true)), graph_text(graph));
  EXPECT_TRUE(
      forward_graph(model_of(with_metric().replace(with_metric().find("counts = 1"), 10, "counts = 0")), 2,
                    true)
          .metrics.empty());
}

TEST(Blocks, AMetricIsOfNumbersAndOfOneKind) {
  const auto fault_of = [](const std::string& text) -> std::string {
    try {
      forward_graph(model_of(text), 2, true);
    } catch (const Error& error) {
      return error.what();
    }
    return "no fault";
  };
  EXPECT_THAT(fault_of(with("steps = [{op = \"embedding\"",
                            "steps = [{metric = \"ids\", of = \"ids\"}, {op = \"embedding\"")),
              HasSubstr("metric 'ids' is a sum of ids i32[8x3], expected numbers that are not integers"));
  EXPECT_THAT(fault_of(with_metric(counted + R"({metric = "energy", of = "y"},)")),
              HasSubstr("metric 'energy' is per target in one place and per step in another"));
  EXPECT_THAT(fault_of(with_metric(R"({metric = "energy", of = "z", per = "token"},)")), HasSubstr("target"));
}

TEST(Blocks, ATiedWeightIsOneState) {
  const Graph graph = forward_graph(model_of(model_text), 1, false);
  EXPECT_THAT(weights_of(graph), ElementsAre("rows.table", "turn.0.into", "turn.1.into"));
  const Graph untied = forward_graph(model_of(with("tie = {table = \"rows.table\"}", "")), 1, false);
  EXPECT_THAT(weights_of(untied), ElementsAre("rows.table", "turn.0.into", "turn.1.into", "tiny_head.table"));
}

TEST(Blocks, WhatWhenLeavesOutIsNotThere) {
  const Graph graph = forward_graph(model_of(with("repeat = 2", "repeat = 1\nshifted = 1")), 1, false);
  EXPECT_THAT(weights_of(graph), ElementsAre("rows.table", "turn.0.into", "turn.0.shift"));
  EXPECT_EQ(count(graph, "bias_add"), 1);
}

TEST(Blocks, AParameterIsWhatTheUseSaysElseTheNumberOfThatNameElseItsDefault) {
  const auto width = [](const std::string& text) {
    return parameter_count(forward_graph(model_of(text), 1, false)) - 6 * 4;
  };
  EXPECT_EQ(width(model_text), 2 * 4 * 8);
  EXPECT_EQ(width(with("model = 4\n", "model = 4\nwide = 3\n")), 2 * 4 * 3);
  EXPECT_EQ(width(with("repeat = 2", "repeat = 2\nwide = \"model + 1\"")), 2 * 4 * 5);
}

TEST(Blocks, AnIndexCountsTheRepetitions) {
  const ModelDefinition model =
      model_of(with("repeat = 2", "repeat = 3\nindex = \"i\"\nwide = \"model + 2 * i\""));
  const auto widths = [](const ModelDefinition& of) {
    std::vector<std::int64_t> extents;
    const Graph graph = forward_graph(of, 1, false);
    for (const State& state : graph.states)
      if (state.name.ends_with(".into")) extents.push_back(value_of(graph, state.value).type.shape[1]);
    return extents;
  };
  EXPECT_THAT(widths(model), ElementsAre(4, 6, 8));
  EXPECT_THAT(widths(model_of(model.expanded_toml)), ElementsAre(4, 6, 8));
}

TEST(Blocks, DropoutIsThereOnlyWhileTrainingAndAtARateAboveZero) {
  const ModelDefinition none = model_of(model_text),
                        some = model_of(with("repeat = 2", "repeat = 2\nrate = 0.1"));
  EXPECT_EQ(count(forward_graph(none, 1, true), "dropout"), 0);
  EXPECT_EQ(count(forward_graph(some, 1, true), "dropout"), 2);
  EXPECT_EQ(count(forward_graph(some, 1, false), "dropout"), 0);
}

TEST(Blocks, EveryDropoutDrawsFromAStreamOfItsOwn) {
  std::vector<std::int64_t> streams;
  for (const Node& node :
       forward_graph(model_of(with("repeat = 2", "repeat = 2\nrate = 0.1")), 1, true).nodes)
    if (node.op->name == "dropout") streams.push_back(node.attributes.integer("stream"));
  EXPECT_THAT(streams, ElementsAre(0, 1));
}

TEST(Blocks, WeightsOfABf16ModelAreBf16AndItsLossIsF32) {
  const Graph graph =
      forward_graph(model_of(with("sequence = 3", "sequence = 3\nprecision = \"bf16\"")), 1, false);
  for (const State& state : graph.states)
    EXPECT_EQ(value_of(graph, state.value).type.dtype, DType::bf16) << state.name;
  EXPECT_EQ(value_of(graph, graph.loss).type, (TensorType{DType::f32, {}}));
}

TEST(Blocks, TheTrainingGraphUpdatesEveryWeight) {
  const Graph graph = training_step_graph(model_of(model_text), 2);
  for (const State& state : graph.states) EXPECT_GE(state.next, 0) << state.name;
}

TEST(Blocks, WeightDecayAppliesToWeightsOfTwoDimensionsUnlessTheySayOtherwise) {
  const auto decays = [](const std::string& text) {
    std::vector<double> rates;
    for (const Node& node : training_step_graph(model_of(text), 1).nodes)
      if (node.op->name == "adamw") rates.push_back(node.attributes.number("weight_decay"));
    return rates;
  };
  EXPECT_THAT(decays(with("repeat = 2", "repeat = 1\nshifted = 1")), ElementsAre(0.1, 0.1, 0));
  EXPECT_THAT(decays(with("init = \"ones\"}", "init = \"ones\", decay = false}")), ElementsAre(0.1, 0, 0));
}

TEST(Blocks, OfTheFileComeBeforeThoseOfTheFoldersEvenInsideTheirBlocks) {
  const std::string own =
      "[block.mlp]\ninputs = [\"x\"]\noutputs = [\"x\"]\nsteps = [{op = \"relu\", of = \"x\", as = \"x\"}]\n";
  const std::string text = with("block = \"turn\"", "block = \"mlp_block\"\nname = \"turn\"") + own;
  const Graph graph = forward_graph(
      parse_model(text, "tiny.toml", {std::string(ALPA_SOURCE_DIR) + "/share/blocks"}), 1, false);
  EXPECT_EQ(count(graph, "relu"), 2);
  EXPECT_EQ(count(graph, "gelu"), 0);
}

class BasedModels : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  ModelDefinition read(const std::string& name) { return read_model(folder_ / name, {}); }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      ("alpa_models_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(BasedModels, TakeFromTheirBaseWhatTheyDoNotSay) {
  write("base.toml", model_text);
  write("wide.toml",
        "base = \"base.toml\"\nname = \"wide\"\n[dimensions]\nmodel = 8\n[training]\nbatch = 32\n");
  const ModelDefinition model = read("wide.toml");
  EXPECT_EQ(model.name, "wide");
  EXPECT_EQ(model.training.batch, 32);
  EXPECT_EQ(model.training.sequence, 3);
  EXPECT_EQ(parameter_count(forward_graph(model, 1, false)), 6 * 8 + 2 * 8 * 16);
}

TEST_F(BasedModels, ReplaceBlocksOneByOneAndLayersAsAWhole) {
  write("base.toml", model_text);
  write("short.toml",
        "base = \"base.toml\"\nname = \"short\"\n[[layer]]\nblock = \"rows\"\nof = \"tokens\"\nas = \"x\"\n"
        "[[layer]]\nblock = \"tiny_head\"\nof = [\"x\", \"targets\"]\nas = \"loss\"\n");
  EXPECT_THAT(forward_graph(read("short.toml"), 1, false).layers, ElementsAre("rows", "tiny_head"));
  EXPECT_THAT(read("short.toml").expanded_toml, Not(HasSubstr("[block.turn]")));
}

TEST_F(BasedModels, ThatRestOnThemselvesAreRefused) {
  write("ring.toml", "base = \"ring.toml\"\nname = \"ring\"\n");
  EXPECT_THAT([&] { read("ring.toml"); },
              testing::ThrowsMessage<Error>(HasSubstr("may build on 8 others at most; is there a cycle?")));
}

TEST_F(BasedModels, FaultsOfTheBaseAreReportedInTheBase) {
  write("base.toml", with("\"rate\"", "\"rat\""));
  write("model.toml", "base = \"base.toml\"\nname = \"model\"\nsurprise = 1\n");
  EXPECT_THAT([&] { read("model.toml"); },
              testing::ThrowsMessage<Error>(AllOf(
                  HasSubstr("base.toml:35:40: in 'rat': no number is named 'rat', did you mean 'rate'?"),
                  HasSubstr("model.toml:3:1: unknown key 'surprise'"))));
}

}  // namespace
}  // namespace alpa
