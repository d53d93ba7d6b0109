#include "libalpa/semantics/stage_semantics.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "libalpa/model/model.h"
#include "tests/support/small_models.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Ne;

class Semantics : public testing::Test {
 protected:
  StageSemantics of(int first, int end, int recomputed_layers = 0,
                    RecomputeForm form = RecomputeForm::full) const {
    return {uses_, {first, end, recomputed_layers, form}};
  }

  Indexed<ValueIndex, bool> kept(const StageSemantics& stage) const {
    Indexed<ValueIndex, bool> kept(graph_.values.size());
    for (const ValueIndex v : stage.saved_values()) kept[v] = true;
    return kept;
  }

  Graph graph_ = tiny_gpt(2, 2);  // layers: embedding, block.0, block.1, head
  GraphUses uses_{graph_};
};

TEST_F(Semantics, SavesWhatTheBackwardTakesOfTheForward) {
  const StageSemantics stage = of(1, 3);
  std::set<int> expected;  // by the definition, one node of the backward after another
  for (const Node& node : graph_.nodes) {
    if (node.phase != Phase::backward || node.layer < 1 || node.layer > 2) continue;
    for (const ValueIndex v : node.operands) {
      const NodeIndex producer = value_of(graph_, v).producer;
      if (producer >= 0 && node_of(graph_, producer).phase == Phase::forward) expected.insert(v);
    }
  }
  EXPECT_THAT(stage.saved_values(), testing::ElementsAreArray(expected));
  for (const bool again : stage.recomputed(kept(stage))) EXPECT_FALSE(again);
}

TEST_F(Semantics, OfAStageThatRecomputesSavesWhatEntersALayer) {
  const StageSemantics stage = of(1, 3, 2);
  for (const ValueIndex v : stage.saved_values()) {
    const NodeIndex producer = value_of(graph_, v).producer;
    bool enters = producer < 0;
    for (const NodeIndex user : uses_.users_of(v))
      enters = enters || (stage.has(user) && node_of(graph_, user).layer != node_of(graph_, producer).layer);
    EXPECT_TRUE(enters) << value_of(graph_, v).name;
  }
  // What the backward takes is kept, or the result of a node that runs again on what is there by then.
  const Indexed<ValueIndex, bool> keeps = kept(stage);
  const Indexed<NodeIndex, bool> again = stage.recomputed(keeps);
  const auto is_there = [&](ValueIndex v) {
    const NodeIndex producer = value_of(graph_, v).producer;
    return producer < 0 || keeps[v] || again[producer] || node_of(graph_, producer).phase != Phase::forward;
  };
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = node_of(graph_, n);
    if (!stage.has(n)) continue;
    if (node.phase != Phase::backward && !again[n]) continue;
    for (const ValueIndex v : node.operands) EXPECT_TRUE(is_there(v)) << value_of(graph_, v).name;
  }
  EXPECT_THAT(again, Contains(true));
}

// Of an attention and an MLP with norms before and residuals after them. Products are kept with their biases,
// as the backward takes the sums alone; of norms and the GELU it has the operand, and makes them again.
TEST_F(Semantics, OfAStageThatRecomputesSelectivelySavesWhatIsExpensiveToMake) {
  const StageSemantics stage = of(1, 3, 2, RecomputeForm::selective);
  const Indexed<ValueIndex, bool> keeps = kept(stage);
  const Indexed<NodeIndex, bool> runs_again = stage.recomputed(keeps);
  std::vector<std::string> saved, again;  // operators of the first block
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = node_of(graph_, n);
    if (node.layer != 1 || node.phase != Phase::forward) continue;
    for (const ValueIndex result : node.results)
      if (keeps[result]) saved.emplace_back(node.op->name);
    if (runs_again[n]) again.emplace_back(node.op->name);
  }
  EXPECT_THAT(saved, ElementsAre("bias_add", "bias_add", "bias_add",  // query, key, value
                                 "attention", "attention",            // and its sums of exponentials
                                 "add",                               // what enters the second norm
                                 "bias_add",                          // what enters the GELU
                                 "add"));                             // what enters the next block
  EXPECT_THAT(again, ElementsAre("layer_norm", "layer_norm", "gelu"));
}

// All that the first layer makes for its own stage, but the mean and the deviation of norms: one of each
// beside the 16 numbers that they are of.
TEST_F(Semantics, OfAStageThatOffloadsSavesTheSameAndMovesWhatIsLarge) {
  const StageSemantics keeping = of(1, 3), offloading = of(1, 3, 1, RecomputeForm::offload);
  EXPECT_EQ(offloading.saved_values(), keeping.saved_values());
  for (const bool again : offloading.recomputed(kept(offloading))) EXPECT_FALSE(again);
  for (const ValueIndex v : graph_.values.indices()) {
    const NodeIndex maker = value_of(graph_, v).producer;
    const bool is_of_first = maker >= 0 && node_of(graph_, maker).layer == 1;
    const bool is_mean_or_deviation = maker >= 0 &&
                                      node_of(graph_, maker).op->name == std::string_view("layer_norm") &&
                                      node_of(graph_, maker).results.front() != v;
    EXPECT_EQ(offloading.is_offloaded(v), is_of_first && keeping.is_saved(v) && !is_mean_or_deviation)
        << value_of(graph_, v).name;
    EXPECT_FALSE(keeping.is_offloaded(v));
    // What leaves the stage, or comes from another, stays.
    EXPECT_FALSE(of(1, 2, 1, RecomputeForm::offload).is_offloaded(v) && offloading.leaves(v));
  }
}

/// Of tests/data.
class SelectiveRecomputation : public testing::TestWithParam<const char*> {};

TEST_P(SelectiveRecomputation, SavesPartOfWhatAStageSavesThatKeepsAll) {
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  const Graph graph =
      training_step_graph(read_model(source / "tests/data" / (std::string("tiny_") + GetParam() + ".toml"),
                                     {source / "share/blocks"}),
                          4);
  const GraphUses uses(graph);
  const int layers = static_cast<int>(graph.layers.size());
  const StageSemantics keeping(uses, {0, layers}),
      selective(uses, {0, layers, layers, RecomputeForm::selective});
  Indexed<ValueIndex, bool> kept(graph.values.size());
  for (const ValueIndex v : selective.saved_values()) kept[v] = true;
  EXPECT_THAT(keeping.saved_values(), IsSupersetOf(selective.saved_values()));
  // What an LSTM or a GRU keeps are its gates and states: sums of products all.
  const bool is_recurrent = std::string(GetParam()) == "lstm" || std::string(GetParam()) == "gru";
  EXPECT_EQ(selective.saved_values().size() < keeping.saved_values().size(), !is_recurrent);
  const Indexed<NodeIndex, bool> again = selective.recomputed(kept);
  for (const NodeIndex n : again.indices()) {
    const Node& node = node_of(graph, n);
    if (node.phase != Phase::backward && !again[n]) continue;
    for (const ValueIndex v : node.operands) {
      const NodeIndex maker = value_of(graph, v).producer;
      EXPECT_TRUE(maker < 0 || kept[v] || node_of(graph, maker).phase != Phase::forward ||
                  (again[maker] && node_of(graph, maker).layer == node.layer))
          << value_of(graph, v).name;
    }
    if (!again[n]) continue;
    EXPECT_THAT(node.op->name, AllOf(Ne("einsum"), Ne("conv2d"), Ne("attention"), Ne("lstm"), Ne("gru"),
                                     Ne("embedding"), Ne("dispatch")));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SelectiveRecomputation,
                         testing::Values("gpt", "llama", "bert", "moe", "deepseek_moe", "conformer", "lstm",
                                         "gru", "vit", "wrn", "unet"),
                         [](const auto& test) { return std::string(test.param); });

// Of a layer that is not recomputed what its backward takes is kept, of one that is what enters it.
TEST_F(Semantics, OfAStageThatRecomputesItsFirstLayersTheOthersKeepTheirs) {
  const StageSemantics none = of(1, 3), all = of(1, 3, 2), one = of(1, 3, 1);
  const auto layer_of = [&](ValueIndex v) {
    const NodeIndex producer = value_of(graph_, v).producer;
    return producer < 0 ? 0 : node_of(graph_, producer).layer;
  };
  int of_first = 0, of_second = 0;
  for (const ValueIndex v : graph_.values.indices()) {
    if (!one.makes(v)) continue;
    const bool is_first = layer_of(v) == 1;
    (is_first ? of_first : of_second) += one.is_saved(v);
    EXPECT_EQ(one.is_saved(v), (is_first ? all : none).is_saved(v)) << value_of(graph_, v).name;
  }
  EXPECT_LT(of_first, of_second);
  const Indexed<NodeIndex, bool> again = one.recomputed(kept(one));
  for (const NodeIndex n : graph_.nodes.indices()) EXPECT_TRUE(!again[n] || node_of(graph_, n).layer == 1);
  EXPECT_THAT(again, Contains(true));
}

TEST_F(Semantics, ASumIsDoneByTheKernelThatMakesTheGradientAndNothingElseTakesIt) {
  const StageSemantics stage = of(0, 4);
  int fused = 0, apart = 0;
  for (const NodeIndex n : graph_.nodes.indices()) {
    if (!node_of(graph_, n).op->sums_micro_batches) continue;
    const NodeIndex kernel = stage.kernel_of_sum(n);
    if (kernel < 0) {
      ++apart;
      continue;
    }
    ++fused;
    EXPECT_EQ(stage.sum_in_kernel(kernel), n);
    EXPECT_TRUE(node_of(graph_, kernel).op->accumulates);
    EXPECT_EQ(node_of(graph_, kernel).results[0], node_of(graph_, n).operands[0]);
  }
  EXPECT_GT(fused, 0);
  const Indexed<NodeIndex, bool> alone = leads_to_weights_alone(graph_);
  for (const NodeIndex n : graph_.nodes.indices()) EXPECT_TRUE(stage.sum_in_kernel(n) < 0 || alone[n]) << n;
}

TEST_F(Semantics, ValuesLeaveToOtherStages) {
  const StageSemantics first = of(0, 2), second = of(2, 4);
  int leaving = 0;
  for (const ValueIndex v : graph_.values.indices()) {
    if (!first.makes(v) || !first.leaves(v)) continue;
    ++leaving;
    EXPECT_FALSE(second.makes(v));
    EXPECT_TRUE(std::ranges::any_of(uses_.users_of(v), [&](NodeIndex user) { return second.has(user); }));
  }
  EXPECT_GT(leaving, 0);
}

}  // namespace
}  // namespace alpa
