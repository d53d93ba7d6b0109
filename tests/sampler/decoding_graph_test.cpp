#include "libalpa/sampler/decoding_graph.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/model/model.h"
#include "libalpa/ops/catalog.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Graph graph_of(const std::string& model) {
  const std::filesystem::path file = source_folder() / "tests/data" / (model + ".toml");
  return training_step_graph(read_model(file, {source_folder() / "share/blocks"}), 2);
}

TEST(DecodingGraph, HasTheParametersCachesAndScores) {
  const DecodingGraph decoding = decoding_graph(graph_of("tiny_llama"), op_catalog(), 3);
  EXPECT_EQ(decoding.sequence, 16);
  EXPECT_EQ(decoding.vocabulary, 64);
  std::vector<std::string> caches;
  for (const State& state : decoding.graph.states)
    if (!state.is_parameter)
      caches.push_back(state.name + ' ' + type_text(value_of(decoding.graph, state.value).type));
  EXPECT_EQ(caches, (std::vector<std::string>{
                        "decoding.cache.0.keys f32[3x16x2x8]", "decoding.cache.0.values f32[3x16x2x8]",
                        "decoding.cache.1.keys f32[3x16x2x8]", "decoding.cache.1.values f32[3x16x2x8]",
                        "decoding.cache.2.keys f32[3x16x2x8]", "decoding.cache.2.values f32[3x16x2x8]",
                        "decoding.cache.3.keys f32[3x16x2x8]", "decoding.cache.3.values f32[3x16x2x8]",
                        "decoding.scores f32[3x1x64]"}));
  EXPECT_EQ(parameter_count(decoding.graph), parameter_count(graph_of("tiny_llama")));
}

TEST(DecodingGraph, KnowsWhatEndsADocument) {
  EXPECT_FALSE(decoding_graph(graph_of("tiny_llama"), op_catalog(), 2).document_end);
  const DecodingGraph apart = decoding_graph(graph_of("tiny_documents"), op_catalog(), 2);
  EXPECT_EQ(apart.document_end, 3);
  for (const Node& node : apart.graph.nodes) EXPECT_NE(node.op->name, "document_starts");
  EXPECT_EQ(
      std::ranges::count(apart.graph.nodes, "cached_attention", [](const Node& n) { return n.op->name; }), 4);
}

TEST(DecodingGraph, LeavesOutDropout) {
  const std::filesystem::path tiny = source_folder() / "tests/data/tiny_gpt.toml";
  const std::string of_tiny = "base = \"tiny_gpt.toml\"\nname = \"other\"\n";
  const auto nodes = [&](const std::string& addition) {
    const ModelDefinition model = parse_model(of_tiny + addition, tiny, {source_folder() / "share/blocks"});
    const DecodingGraph decoding = decoding_graph(training_step_graph(model, 2), op_catalog(), 2);
    std::vector<std::string> names;
    for (const Node& node : decoding.graph.nodes) names.emplace_back(node.op->name);
    return names;
  };
  EXPECT_EQ(nodes("[constants]\ndropout = 0.1\n"), nodes(""));
}

struct Refused {
  const char *model, *why;
};

TEST(DecodingGraph, IsRefusedForOtherModelsByWhatStandsInTheWay) {
  for (const auto& [model, why] : std::vector<Refused>{
           {"tiny_bert", "'attention' of layer 'block.0' sees what comes later (causal = 0)"},
           {"tiny_unet", "it has no loss of tokens"},
           {"tiny_vit", "its inputs are no tokens"},
           {"tiny_moe", "mixes the tokens of a sequence"},
       })
    EXPECT_THAT(
        [&] { decoding_graph(graph_of(model), op_catalog(), 1); },
        ThrowsMessage<Error>(AllOf(HasSubstr("text cannot be sampled from this model: "), HasSubstr(why))))
        << model;
}

}  // namespace
}  // namespace alpa
