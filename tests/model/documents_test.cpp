// Sequences of several documents, kept apart by [training] document_end.
#include <gmock/gmock.h>

#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/model/model.h"
#include "tests/model/models.h"
#include "tests/support/interpreter.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

ModelDefinition documents_model(const std::string& family, const std::string& training) {
  return parse_model("base = \"" ALPA_SOURCE_DIR "/tests/data/tiny_" + family +
                         ".toml\"\nname = \"other\"\n[training]\nbatch = 1\n" + training,
                     "other.toml", {ALPA_SOURCE_DIR "/share/blocks"});
}

TEST(Documents, AreKeptApartByEachAttentionOfItsOwn) {
  const Graph graph = forward_graph(documents_model("llama", "document_end = 3\n"), 1, true);
  int attentions = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->name != "attention") continue;
    ++attentions;
    ASSERT_EQ(node.operands.size(), 4u);
    const Node& starts = node_of(graph, value_of(graph, node.operands[3]).producer);
    EXPECT_EQ(starts.op->name, "document_starts");
    EXPECT_EQ(starts.attributes.integer("end"), 3);
    EXPECT_EQ(starts.layer, node.layer);
  }
  EXPECT_EQ(attentions, 4);
}

TEST(Documents, AreOneWhereNobodySaysOtherwise) {
  const auto print = [](const std::string& training) {
    return graph_fingerprint(forward_graph(documents_model("llama", training), 1, true));
  };
  EXPECT_EQ(print(""), print("document_end = -1\n"));
  EXPECT_NE(print(""), print("document_end = 3\n"));
}

TEST(Documents, NeedAttentionToWhatComesBefore) {
  for (const char* family : {"bert", "vit", "lstm"})
    EXPECT_THAT([&] { documents_model(family, "document_end = 3\n"); },
                ThrowsMessage<Error>(HasSubstr("[training] document_end keeps documents apart in causal "
                                               "attention of the model's tokens, and no layer has one")))
        << family;
}

/// The loss of a sequence, with weights that depend on their names alone.
double loss_of(const Values& tokens, const Values& targets, const std::string& training) {
  const ModelDefinition model =
      documents_model("llama", "sequence = " + std::to_string(tokens.size()) + "\n" + training);
  const Graph graph = forward_graph(model, 1, true);
  const auto device = make_cpu_device(1);
  Interpreter forward(*device, graph);
  for (const State& state : graph.states) {
    const std::int64_t count = element_count(value_of(graph, state.value).type.shape);
    forward.set(state.value, uniform_values(count, -0.3, 0.3, std::hash<std::string>{}(state.name)));
  }
  for (const Input& input : graph.inputs)
    if (input.kind == InputKind::tokens || input.kind == InputKind::targets)
      forward.set(input.value, input.kind == InputKind::tokens ? tokens : targets);
  forward.run_forward({1, 0, 0});
  return forward.get(graph.loss)[0];
}

// Positions of a Llama are relative: what a document is worth does not depend on what stands before it, if
// that is not seen. Losses are sums of some twenty terms of f32.
TEST(Documents, HaveTheLossesTheyHaveAlone) {
  const Values first{5, 9, 9, 21, 60, 2, 3}, second{7, 7, 40, 1, 3}, third{11, 12, 13, 14};
  const Values first_next{9, 9, 21, 60, 2, 3, 7}, second_next{7, 40, 1, 3, 11}, third_next{12, 13, 14, 63};
  const auto joined = [](Values a, const Values& b, const Values& c) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), c.begin(), c.end());
    return a;
  };
  const Values tokens = joined(first, second, third), targets = joined(first_next, second_next, third_next);
  const double alone =
      loss_of(first, first_next, "") + loss_of(second, second_next, "") + loss_of(third, third_next, "");
  EXPECT_NEAR(loss_of(tokens, targets, "document_end = 3\n"), alone, 1e-5 * alone);
  EXPECT_GT(std::abs(loss_of(tokens, targets, "") - alone), 1e-3 * alone);
}

}  // namespace
}  // namespace alpa
