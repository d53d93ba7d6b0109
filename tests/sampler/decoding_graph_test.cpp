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
  EXPECT_EQ(caches,
            (std::vector<std::string>{
                "cache.0.keys f32[3x16x2x8]", "cache.0.values f32[3x16x2x8]", "cache.1.keys f32[3x16x2x8]",
                "cache.1.values f32[3x16x2x8]", "cache.2.keys f32[3x16x2x8]", "cache.2.values f32[3x16x2x8]",
                "cache.3.keys f32[3x16x2x8]", "cache.3.values f32[3x16x2x8]", "scores f32[3x1x64]"}));
  EXPECT_EQ(parameter_count(decoding.graph), parameter_count(graph_of("tiny_llama")));
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
