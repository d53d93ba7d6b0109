// Models whose extents no number of devices divides, and what is added to them.
#include <gmock/gmock.h>

#include "libalpa/model/model.h"

namespace alpa {
namespace {

using testing::ElementsAre;

ModelDefinition model_of(const std::string& family, const std::string& dimensions,
                         const std::string& training = "") {
  return parse_model("base = \"" ALPA_SOURCE_DIR "/configs/models/" + family +
                         ".toml\"\nname = \"odd\"\n[dimensions]\nlayers = 1\n" + dimensions +
                         "[training]\nbatch = 1\nsequence = 16\n" + training,
                     "odd.toml", {ALPA_SOURCE_DIR "/share/blocks"});
}

const State& state_of(const Graph& graph, const std::string& name) {
  for (const State& state : graph.states)
    if (state.name.ends_with(name)) return state;
  ADD_FAILURE() << name;
  return graph.states.front();
}

Shape padded_shape(const ModelDefinition& model, const std::string& name) {
  const Graph graph = forward_graph(model, 1, true);
  return value_of(graph, state_of(graph, name).value).type.shape;
}

TEST(PaddedVocabulary, HasRowsForAllDevices) {
  const ModelDefinition odd = model_of("gpt", "vocabulary = 5003\nmodel = 32\nheads = 4\n");
  const std::optional<ModelDefinition> padded = with_padded_vocabulary(odd, 8);
  ASSERT_TRUE(padded);
  EXPECT_THAT(padded_shape(*padded, "embedding.table"), ElementsAre(5008, 32));
  EXPECT_FALSE(with_padded_vocabulary(odd, 1));
  EXPECT_FALSE(with_padded_vocabulary(model_of("gpt", "vocabulary = 5008\nmodel = 32\nheads = 4\n"), 8));
  EXPECT_FALSE(with_padded_vocabulary(
      model_of("gpt", "vocabulary = 5003\nmodel = 32\nheads = 4\n", "pad_to = 1\n"), 8));
}

/// What so many heads become; 0: they are left as they are. GPT-2 1.5B has 25.
std::int64_t padded_heads(int heads, int devices) {
  const std::string extents =
      "vocabulary = 64\nmodel = " + std::to_string(4 * heads) + "\nheads = " + std::to_string(heads) + "\n";
  const std::optional<ModelDefinition> padded = with_padded_heads(model_of("gpt", extents), devices);
  return padded ? padded_shape(*padded, "attention.query")[1] : 0;
}

TEST(PaddedHeads, AreOfTheLargestPowerOfTwoThatAddsNoMoreThanAnEighth) {
  EXPECT_EQ(padded_heads(25, 8), 28);
  EXPECT_EQ(padded_heads(25, 2), 26);
  EXPECT_EQ(padded_heads(15, 64), 16);
  EXPECT_EQ(padded_heads(12, 8), 0);  // four may share them, and 16 are a third more
  EXPECT_EQ(padded_heads(16, 8), 0);
  EXPECT_EQ(padded_heads(3, 8), 0);
  EXPECT_EQ(padded_heads(25, 3), 0);
  EXPECT_EQ(padded_heads(25, 1), 0);
}

TEST(PaddedHeads, OfQueriesGoWithTheKeysThatTheyShare) {
  const ModelDefinition model =
      model_of("llama", "vocabulary = 64\nmodel = 36\nheads = 9\ngroups = 3\n", "pad_heads_to = 2\n");
  const Graph graph = forward_graph(model, 1, true);
  const auto shapes = [&](const std::string& name) {
    const State& state = state_of(graph, name);
    return std::pair{value_of(graph, state.value).type.shape, unpadded_type(graph, state).shape};
  };
  EXPECT_EQ(shapes("attention.query"), std::pair(Shape{36, 12, 4}, Shape{36, 9, 4}));
  EXPECT_EQ(shapes("attention.key"), std::pair(Shape{36, 4, 4}, Shape{36, 3, 4}));
  EXPECT_EQ(shapes("attention.output"), std::pair(Shape{12, 4, 36}, Shape{9, 4, 36}));
}

}  // namespace
}  // namespace alpa
