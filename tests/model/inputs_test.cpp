// Inputs that a model names itself, instead of tokens and targets.
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/model/models.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string classifier = R"(name = "points"
[dimensions]
width = 6
classes = 4
[block.classifier]
parameters = ["width", "classes"]
inputs = ["x", "kinds"]
outputs = ["loss"]
steps = [
  {op = "einsum", equation = "b d, d c -> b c", of = ["x", "weight"], as = "logits"},
  {block = "token_loss", name = "loss", of = ["logits", "kinds"], as = "loss"},
]
[block.classifier.weights]
weight = {shape = ["width", "classes"], init = {normal = 1}}
[[layer]]
block = "classifier"
of = ["points", "kinds"]
as = "loss"
)";
const std::string inputs = R"([input.points]
shape = ["width"]
[input.kinds]
shape = []
below = "classes"
)";

ModelDefinition points_model(const std::string& text) {
  return parse_model(text, "points.toml", {std::filesystem::path(ALPA_SOURCE_DIR) / "share" / "blocks"});
}

TEST(Inputs, HaveARowForEachSample) {
  const Graph graph = forward_graph(points_model(classifier + inputs), 3, true);
  ASSERT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(value_of(graph, graph.inputs[0].value).name, "points");
  EXPECT_EQ(value_of(graph, graph.inputs[0].value).type, (TensorType{DType::f32, {3, 6}}));
  EXPECT_EQ(value_of(graph, graph.inputs[1].value).type, (TensorType{DType::i32, {3}}));
  EXPECT_EQ(graph.inputs[1].below, 4);
  for (const Input& input : graph.inputs) EXPECT_EQ(input.kind, InputKind::data);
}

TEST(Inputs, AreNumbersOfTheModelsPrecision) {
  const Graph graph =
      forward_graph(points_model(classifier + inputs + "[training]\nprecision = \"bf16\"\n"), 3, true);
  EXPECT_EQ(value_of(graph, graph.inputs[0].value).type.dtype, DType::bf16);
}

TEST(Inputs, OfMoreNumbersThanAnAddressCountsAreRefusedByNameAndPlace) {
  const std::string large =
      "[input.points]\nshape = [4294967296, 4294967296]\n" + inputs.substr(inputs.find("[input.k"));
  EXPECT_THAT([&] { points_model(classifier + large); },
              ThrowsMessage<Error>(HasSubstr(
                  "points.toml:19:8: f32[8x4294967296x4294967296] 'points' of 8 samples has more than")));
}

TEST(Inputs, OfIdsHaveThemIn32Bits) {
  std::string text = classifier + inputs;
  text.replace(text.find("below = \"classes\""), 17, "below = 3000000000");
  EXPECT_THAT(
      [&] { points_model(text); },
      ThrowsMessage<Error>(HasSubstr("'below' is 3000000000, expected an integer from 1 to 2147483648")));
}

TEST(Inputs, StandInTheExpandedModel) {
  const ModelDefinition model = points_model(classifier + inputs);
  EXPECT_EQ(graph_text(forward_graph(parse_model(model.expanded_toml, "expanded"), 2, true)),
            graph_text(forward_graph(model, 2, true)));
}

struct Wrong {
  std::string inputs, place, reported;
};

class WrongInputs : public testing::TestWithParam<Wrong> {};

TEST_P(WrongInputs, AreTold) {
  EXPECT_THAT([] { forward_graph(points_model(classifier + GetParam().inputs), 2, true); },
              ThrowsMessage<Error>(AllOf(HasSubstr(GetParam().place), HasSubstr(GetParam().reported))));
}

INSTANTIATE_TEST_SUITE_P(
    Table, WrongInputs,
    testing::Values(
        Wrong{"[input.points]\nshape = [\"wide\"]\n[input.kinds]\nshape = []\nbelow = \"classes\"\n",
              "points.toml:19:8", "no number is named 'wide', did you mean 'width'?"},
        Wrong{"[input.points]\nshape = [0]\n[input.kinds]\nshape = []\nbelow = \"classes\"\n",
              "points.toml:19:8", "'0' in the shape of 'points' is 0, expected an integer from 1"},
        Wrong{"[input.points]\nshape = [\"width\"]\n[input.kinds]\nshape = []\nbelow = 0.5\n",
              "points.toml:21:8", "'below' is 0.5, expected an integer from 1"},
        Wrong{"[input.points]\n", "points.toml:19:1", "missing key 'shape'"},
        Wrong{"[input.points]\nshape = [\"width\"]\n[input.spare]\nshape = []\n", "points.toml:21:8",
              "nothing uses the value 'spare'"},
        Wrong{"[input.points]\nshape = [\"width\"]\n", "points.toml", "unknown value 'kinds'"},
        Wrong{"", "points.toml", "unknown value 'points'"}));

}  // namespace
}  // namespace alpa
