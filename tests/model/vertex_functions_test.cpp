// Models over graphs: the language of vertex functions, and the functions that come with the suite, each
// against the formulas of its paper, vertex by vertex.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/model/models.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A vertex function of that head and steps, over graphs of that table.
std::string text_of_model(
    const std::string& steps, const std::string& states = "h = \"width\"",
    const std::string& graphs = "vocabulary = 9\nclasses = 4\nchildren = 2\nvertices = 5\n") {
  return "name = \"graphs\"\n" + (graphs.empty() ? "" : "[graphs]\n" + graphs) +
         R"([dimensions]
width = 3
[training]
batch = 4
group_samples = 2
[vertex.cell]
parameters = ["width"]
inputs = ["x"]
outputs = ["y"]
)" + "states = {" +
         states + "}\nsteps = [\n" + steps + R"(]
[vertex.cell.weights]
weight = {shape = ["width", "width"], init = {normal = 1}}
[[layer]]
block = "vertex_embedding"
of = "tokens"
as = "x"
vocabulary = 9
embedding = "width"
[[layer]]
block = "cell"
of = "x"
as = "y"
[[layer]]
block = "vertex_head"
of = ["y", "labels"]
as = "loss"
in = "width"
classes = 4
)";
}

const std::string kGather = "{gather = \"h\", as = \"below\", sum = 1},\n",
                  kProduct =
                      "{op = \"einsum\", equation = \"b v d, d e -> b v e\", of = [\"below\", \"weight\"], "
                      "as = \"of_below\"},\n",
                  kSum = "{op = \"add\", of = [\"x\", \"of_below\"], as = \"y\"},\n",
                  kScatter = "{scatter = \"h\", of = \"y\"},\n";

ModelDefinition graphs_model(const std::string& text) {
  return parse_model(text, "graphs.toml", {std::filesystem::path(ALPA_SOURCE_DIR) / "share" / "blocks"});
}

TEST(VertexFunctions, StandAmongOrdinaryLayers) {
  const Graph graph =
      forward_graph(graphs_model(text_of_model(kGather + kProduct + kSum + kScatter)), 4, true);
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.emplace_back(node.op->name);
  EXPECT_THAT(std::vector(ops.begin(), ops.begin() + 4),
              ElementsAre("embedding", "rounds", "einsum", "bias_add"));
  EXPECT_EQ(graph.layers.size(), 3u);
}

TEST(VertexFunctions, TakeTheirGraphsAsThreeInputs) {
  const Graph graph =
      forward_graph(graphs_model(text_of_model(kGather + kProduct + kSum + kScatter)), 4, true);
  ASSERT_EQ(graph.inputs.size(), 3u);
  std::vector<std::string> inputs;
  for (const Input& input : graph.inputs) {
    EXPECT_EQ(input.kind, InputKind::vertices);
    const Value& value = value_of(graph, input.value);
    inputs.push_back(fmt::format("{} {} {}", value.name, type_text(value.type), input.below));
  }
  EXPECT_THAT(inputs, ElementsAre("tokens i32[4x5] 9", "labels i32[4x5] 4", "structure i32[4x5x3] 0"));
}

TEST(VertexFunctions, StandInTheExpandedModel) {
  const ModelDefinition model = graphs_model(text_of_model(kGather + kProduct + kSum + kScatter));
  EXPECT_EQ(graph_text(forward_graph(parse_model(model.expanded_toml, "expanded"), 2, true)),
            graph_text(forward_graph(model, 2, true)));
}

// The sum of both, which a parent does not see, leads to the state; the product of that does not.
TEST(VertexFunctions, GiveWhatTheirRoundsHaveWhereverItIsDone) {
  const std::string tanh = "{op = \"tanh\", of = \"y\", as = \"h\"},\n{scatter = \"h\", of = \"h\"},\n",
                    graphs = "vocabulary = 9\nclasses = 4\nchildren = 2\nvertices = 5\n";
  for (const char* const form : {"", "eager = false\nlazy = false\nfused = false\n"}) {
    const ModelDefinition model =
        graphs_model(text_of_model(kGather + kProduct + kSum + tanh, "h = \"width\"", graphs + form));
    EXPECT_EQ(graph_text(forward_graph(parse_model(model.expanded_toml, "expanded"), 2, true)),
              graph_text(forward_graph(model, 2, true)));
    const Graph graph = forward_graph(model, 4, true);
    const auto head = std::ranges::find(graph.nodes, std::string_view("einsum"),
                                        [](const Node& node) { return node.op->name; });
    ASSERT_NE(head, graph.nodes.end());
    EXPECT_EQ(value_of(graph, head->operands[0]).producer, NodeIndex(1)) << "of the rounds";
    EXPECT_EQ(node_of(graph, NodeIndex(1)).op->name, "rounds");
    EXPECT_EQ(node_of(graph, NodeIndex(1)).attributes.has("fused"), *form != '\0');
  }
}

TEST(VertexFunctions, AreExpandedWithTheRoundsOfTheData) {
  const std::string graphs = "vocabulary = 9\nclasses = 4\nchildren = 2\nvertices = 5\n";
  const ModelDefinition model =
      graphs_model(text_of_model(kGather + kProduct + kSum + kScatter, "h = \"width\"",
                                 graphs + "rounds = [6, 3, 1]\nbatching = \"agenda\"\neager = false\n"));
  const ModelDefinition again = parse_model(model.expanded_toml, "expanded");
  EXPECT_THAT(again.graphs[0].rounds, ElementsAre(6, 3, 1));
  EXPECT_EQ(again.graphs[0].batching.policy, BatchingPolicy::agenda);
  EXPECT_FALSE(again.graphs[0].form.eager);
  const Graph graph = training_step_graph(again, 2);
  EXPECT_EQ(graph_text(graph), graph_text(training_step_graph(model, 2)));
  int found = 0;
  for (const Node& node : graph.nodes) {
    if (!node.op->runs_rounds) continue;
    EXPECT_EQ(node.attributes.text("typical_rounds"), "6 3 1");
    ++found;
  }
  EXPECT_EQ(found, 2) << "there and back";
}

struct WrongFunction {
  std::string text, reported;
};

class WrongVertexFunctions : public testing::TestWithParam<WrongFunction> {};

TEST_P(WrongVertexFunctions, AreReported) {
  EXPECT_THAT([] { graphs_model(GetParam().text); },
              ThrowsMessage<Error>(AllOf(HasSubstr("graphs.toml:"), HasSubstr(GetParam().reported))));
}

const std::string kGood = kGather + kProduct + kSum + kScatter;

INSTANTIATE_TEST_SUITE_P(
    Table, WrongVertexFunctions,
    testing::Values(
        WrongFunction{text_of_model(kGather + kProduct + kSum),
                      "the state 'h' is published (scatter) 0 times, expected once"},
        WrongFunction{text_of_model(kGood + kScatter),
                      "the state 'h' is published (scatter) 2 times, expected once"},
        WrongFunction{text_of_model(kGood, "h = \"width\", c = 2"), "nothing gathers the state 'c'"},
        WrongFunction{text_of_model("{gather = \"hh\", as = \"below\"},\n" + kProduct + kSum + kScatter),
                      "no state is named 'hh', did you mean 'h'?"},
        WrongFunction{
            text_of_model(kGather + "{op = \"bias_add\", of = [\"below\", \"shift\"], as = \"of_below\"},\n" +
                          kSum + kScatter),
            "unknown value 'shift'"},
        WrongFunction{text_of_model(kGood, "h = \"width\"", ""), "unknown value 'labels'"},
        WrongFunction{text_of_model(kGood, "h = \"width\"", "vocabulary = 9\nclasses = 4\nvertices = 5\n"),
                      "missing key 'children'"},
        WrongFunction{text_of_model(kGood, "h = \"width\"",
                                    "vocabulary = 9\nclasses = 4\nchildren = 65\nvertices = 5\n"),
                      "'children' is 65, expected an integer from 1 to 64"},
        WrongFunction{
            text_of_model(kGood, "h = \"width\"",
                          "vocabulary = 9\nclasses = 4\nchildren = 2\nvertices = 5\nrounds = [6, 5]\n"),
            "'rounds' have more than the 10 rows that there is room for"},
        WrongFunction{
            text_of_model(kGood, "h = \"width\"",
                          "vocabulary = 9\nclasses = 4\nchildren = 2\nvertices = 5\nbatching = \"all\"\n"),
            "serial"},
        WrongFunction{text_of_model(kGood).replace(text_of_model(kGood).find("batch = 4"), 9,
                                                   "batch = 4\nprecision = \"bf16\""),
                      "vertex functions compute in f32: expected [training] precision"},
        WrongFunction{text_of_model(kGood, ""),
                      "a vertex function has states that vertices publish, and an input"},
        WrongFunction{
            text_of_model("{op = \"slice\", of = \"x\", as = \"x\", begin = 2, size_c = 2},\n" + kGood),
            "2 elements from 2 on are not part of 3"},
        WrongFunction{
            text_of_model(kGood).replace(text_of_model(kGood).find("[vertex.cell]"), 0,
                                         "[block.cell]\ninputs = [\"x\"]\noutputs = [\"x\"]\nsteps = []\n"),
            "there is a block 'cell' too"},
        WrongFunction{text_of_model(kGood + "{metric = \"sum\", of = \"y\"},\n"),
                      "a vertex function has no metrics"},
        WrongFunction{text_of_model(kGather + kProduct + kSum + "{op = \"gelu\", of = \"y\", as = \"y\"},\n" +
                                    kScatter),
                      "operator 'gelu' cannot be done round by round"}));

}  // namespace
}  // namespace alpa
